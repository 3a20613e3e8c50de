"""The HTML report in a real browser: drawn, changed by its selectors, silent, and without a request. Full tier."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
EXPERIMENT = Path(__file__).parents[2] / "docs/examples/fake-grid-256.yaml"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    command = [sys.executable, "-m", "xcfg.cli", "-q"]
    run = [*command, "run", str(EXPERIMENT), "--allow-fake", "--out", str(folder / "run")]
    subprocess.run(run, check=False, stdout=subprocess.DEVNULL)
    subprocess.run([*command, "report", str(folder / "run"), "--html", str(folder / "report.html")], check=False)
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture(params=[(1280, 900), (390, 844)], ids=["desktop", "phone"])
def opened(request, browser, report, scheme):
    """(the page, what its console said, what it asked for)."""
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda sent: asked.append(sent.url))
    page.goto(report.as_uri())
    page.wait_for_selector("#charts canvas")
    yield page, said, asked
    context.close()


def _wait_for_ink(page, selector, least) -> None:
    """Until so many pixels of the chart at ``selector`` are not transparent; fails where they never are."""
    page.wait_for_function(
        """([selector, least]) => {
          let ink = 0;
          for (const canvas of document.querySelector(selector).querySelectorAll("canvas")) {
            const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            for (let at = 3; at < pixels.length; at += 4) ink += pixels[at] > 0;
          }
          return ink > least;
        }""",
        arg=[selector, least],
        timeout=10_000,
    )


def test_everything_is_drawn_without_a_word_or_a_request(opened, report) -> None:
    page, said, asked = opened
    assert said == []
    assert asked == [report.as_uri()]
    assert page.locator("#charts canvas").count() == 5
    _wait_for_ink(page, "#heat", 10_000)
    _wait_for_ink(page, "#charts .chart", 500)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_selectors_change_what_is_shown(opened) -> None:
    page, said, _ = opened
    before = page.locator("#knobs").inner_text()
    page.select_option("#choice", index=8)
    assert page.locator("#knobs").inner_text() != before
    table = page.locator("#heat-table")
    first = table.evaluate("node => node.textContent")
    metrics = page.get_by_label("Metric").locator("option").all_inner_texts()
    page.get_by_label("Metric").select_option("mean_abs_dlogp")
    assert "mean_abs_dlogp" in metrics
    assert table.evaluate("node => node.textContent") != first
    page.get_by_label("Across").select_option("training.compute_dtype")
    assert "training.compute_dtype" in table.evaluate("node => node.textContent")
    page.get_by_label("Down").select_option("training.compute_dtype")  # the two stay two
    assert page.get_by_label("Across").locator("option:checked").inner_text() != "training.compute_dtype"
    assert said == []


def test_it_is_usable_from_the_keyboard(opened) -> None:
    page, _, _ = opened
    page.locator("a[data-case='8']").focus()
    page.keyboard.press("Enter")
    assert page.locator("#choice").input_value() == "8"
    assert page.evaluate("document.activeElement.id") == "case"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "choice"


def test_text_stands_out_from_its_ground(browser, report, scheme) -> None:
    """Contrast by WCAG 2.2, at least 4.5 for each colour of text."""
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(report.as_uri())
    names = ("ink", "green", "red", "yellow", "dim", "accent")
    colours = {name: page.evaluate("name => colour(name)", name) for name in (*names, "paper", "soft")}
    context.close()
    for name in names:
        for ground in ("paper", "soft"):
            assert _contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

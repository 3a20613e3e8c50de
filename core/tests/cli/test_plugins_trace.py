"""``xcfg plugins trace``: plugins are really imported, and what is told of them is known beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .broken_site import Ended, Site

PROBE = "import time\nfrom xcfg.plugin import hookimpl\n"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "site").mkdir()
    return Site(tmp_path / "site")


def traced(site: Site, code: int = 0) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The document, and its rows by distribution (core has two plugins: the last)."""
    done = site.xcfg("plugins", "trace", "--json")
    assert done.code == code, done.out + done.err
    return done.document, {row["distribution"]: row for row in done.document["plugins"]}


def hooks(row: dict[str, Any]) -> dict[str, int | None]:
    return {item["hook"]: item["descriptors"] for item in row["hooks"]}


def test_hooks_and_counts_are_those_of_the_module(site: Site) -> None:
    site.add("sound")
    document, rows = traced(site)
    assert (document["schema"], document["status"]) == ("xcfg.plugins.trace/1", "pass")
    row = rows["xcfg-sound"]
    assert {"name", "distribution", "version", "state", "error", "import_s", "heavy", "hooks"} == row.keys()
    assert (row["name"], row["version"], row["state"], row["error"]) == ("sound", "1.0", "loaded", "")
    assert hooks(row) == {"xcfg_knobs": 2, "xcfg_scorers": 1, "xcfg_reject_case": None}
    seconds = {item["hook"]: item["seconds"] for item in row["hooks"]}
    assert seconds["xcfg_reject_case"] is None, "a hook of a later phase was called"
    assert 0 <= seconds["xcfg_knobs"] < 60 and 0 <= seconds["xcfg_scorers"] < 60
    assert site.imported == {"xcfg_sound_plugin"}


def test_seconds_are_those_that_passed(site: Site) -> None:
    """The module sleeps 0.3 s when it is imported and 0.2 s in its hook: each is in its own column."""
    site.add("slow-import")
    site.add("sound")
    _, rows = traced(site)
    slow, sound = rows["xcfg-slow-import"], rows["xcfg-sound"]
    (hook,) = slow["hooks"]
    assert slow["import_s"] >= 0.3
    assert hook["seconds"] >= 0.2 and hook["descriptors"] == 0
    assert sound["import_s"] < slow["import_s"]
    assert sum(item["seconds"] or 0.0 for item in sound["hooks"]) < 0.2


def test_heavy_modules_belong_to_the_plugin_that_brought_them(site: Site) -> None:
    """Stand-ins; ``an_engine`` is heavy because a descriptor of another plugin requires it, ``light`` is not."""
    for name in ("torch", "vllm", "an_engine", "light"):
        (site.folder / name).mkdir()
        (site.folder / name / "__init__.py").write_text("")
    (site.folder / "torch/nn.py").write_text("")
    empty = PROBE + "@hookimpl\ndef xcfg_knobs():\n    {}return []\n"
    site.write("xcfg-a", "import torch.nn, light\n" + empty.format(""))
    site.write("xcfg-b", "import torch, vllm\n" + empty.format("import an_engine; "))
    needing = (
        "from xcfg.model.scorer import Role, ScorerDescriptor\n@hookimpl\ndef xcfg_scorers():\n"
        "    return [ScorerDescriptor(id='c', summary='', target='m:S', roles=[*Role][:1], requires=('an_engine',))]\n"
    )
    site.write("xcfg-c", PROBE + needing)
    _, rows = traced(site)
    assert {name: rows[name]["heavy"] for name in ("xcfg-a", "xcfg-b", "xcfg-c")} == {
        "xcfg-a": ["torch"],
        "xcfg-b": ["an_engine", "vllm"],
        "xcfg-c": [],
    }


def test_failures_are_rows(site: Site) -> None:
    broken = PROBE + (
        "@hookimpl\ndef xcfg_knobs():\n    return []\n"
        "@hookimpl\ndef xcfg_scorers():\n    time.sleep(0.1)\n    raise OSError('gone')\n"
        "@hookimpl\ndef xcfg_executors():\n    return []\n"
    )
    site.write("xcfg-half", broken)
    site.add("exits-at-import")
    site.add("sound", distribution="xcfg-skew", requires=["xcfg>=99"])
    site.add("claims-same", distribution="xcfg-one")
    site.add("claims-same", distribution="xcfg-two")
    site.add("sound")
    document, rows = traced(site, 4)
    assert document["status"] == "error"
    half = rows["xcfg-half"]
    assert (half["state"], half["error"]) == ("failed", "xcfg_scorers raised OSError: gone")
    assert hooks(half) == {"xcfg_knobs": 0, "xcfg_scorers": None, "xcfg_executors": None}
    called = {item["hook"]: item["seconds"] for item in half["hooks"]}
    assert called["xcfg_scorers"] >= 0.1 and called["xcfg_executors"] is None
    assert rows["xcfg-exits-at-import"]["error"] == "SystemExit: 0"
    assert rows["xcfg-exits-at-import"]["import_s"] > 0 and rows["xcfg-exits-at-import"]["hooks"] == []
    skew = rows["xcfg-skew"]
    assert (skew["state"], skew["import_s"], skew["hooks"]) == ("version-skew", None, [])
    for name in ("xcfg-one", "xcfg-two"):
        assert rows[name]["error"] == "scorer 'same' is registered by xcfg-one and xcfg-two"
        assert hooks(rows[name]) == {"xcfg_scorers": 1}
    assert (rows["xcfg-sound"]["state"], rows["xcfg-sound"]["error"]) == ("loaded", "")


def test_rows_come_in_the_order_of_loading_and_of_the_list(site: Site) -> None:
    for name in ("xcfg-zeta", "xcfg-alpha"):
        site.write(name, PROBE)
    listed = site.xcfg("plugins", "list", "--json").document["plugins"]
    document, _ = traced(site)
    order = [row["name"] for row in document["plugins"]]
    assert order == [row["name"] for row in listed]
    assert order[:2] == ["builtin", "testing"] and order.index("alpha") < order.index("zeta")


def test_a_plugin_left_out_is_not_imported(site: Site) -> None:
    site.add("slow-import")
    done = site.xcfg("-p", "no:slow-import", "plugins", "trace", "--json")
    (row,) = (row for row in done.document["plugins"] if row["name"] == "slow-import")
    assert (done.code, row["state"], row["import_s"]) == (0, "disabled", None)
    assert site.imported == set()


def test_the_table_says_the_same(site: Site) -> None:
    site.add("sound")
    site.add("hook-raises")
    done: Ended = site.xcfg("plugins", "trace")
    text = " ".join(done.out.split())
    assert done.code == 4
    assert "xcfg-sound" in text and "knobs 2 (" in text and "reject_case" in text
    assert "scorers failed (" in text and "xcfg_scorers raised KeyError: 'scorers'" in text

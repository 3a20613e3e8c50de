"""The HTML report, read by another parser and held against the sealed tensors of its run."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file

from xcfg.report.html.points import BINS, points
from xcfg.report.html.thinning import thinned

NASTY = "</script><img src=x onerror=alert(1)>"
NAME = "<img src=x onerror=alert(1)>"
"""What may name a folder, too."""


class Page(HTMLParser):
    """Tags with their attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._script = False
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        self._script = tag == "script"
        if self._script:
            self.scripts.append("")

    def handle_endtag(self, tag) -> None:
        self._script = False

    def handle_data(self, data) -> None:
        if self._script:
            self.scripts[-1] += data

    @property
    def data(self):
        return json.loads(self.scripts[0])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """(the page of a run on fakes, its size in bytes, the folder of the run)."""
    import contextlib
    import io

    from xcfg.cli.entry import main

    folder = tmp_path_factory.mktemp("html")
    (folder / "model").mkdir()
    (folder / "model/config.json").write_text('{"vocab_size": 64}')
    (folder / "model/tokenizer.json").write_text("{}")
    prompts = [{"id": f"{NASTY}{row}", "token_ids": list(range(1, row + 2))} for row in range(4)]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(item) + "\n" for item in prompts))
    experiment = {
        "schema": "xcfg.experiment/1",
        "name": NAME,
        "checkpoint": {"path": "model"},
        "rollout": {"scorer": "fake"},
        "training": {"scorer": "fake"},
        "tokens": {"sample": {"prompts": "prompts.jsonl", "max_new_tokens": 6}},
        "baseline": {"rollout.dtype": "bfloat16", "training.compute_dtype": "bfloat16"},
        "axes": {"rollout.dtype": ["bfloat16", "float32"], "batch.size": [8, 1]},
    }
    (folder / "experiment.json").write_text(json.dumps(experiment))
    out, path = folder / "out", folder / "report.html"
    for words in (
        ["-q", "run", folder / "experiment.json", "--allow-fake", "--out", out],
        ["-q", "report", out, "--html", path],
    ):
        with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit):
            main([str(word) for word in words])
    return Page(path.read_text(encoding="utf-8")), path.stat().st_size, out


def unpacked(text):
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def test_it_needs_nothing_from_outside(page) -> None:
    found, size, _ = page
    assert size < 6_000_000
    for _, attributes in found.tags:
        assert not {"src", "srcset", "data"} & set(attributes)
        assert attributes.get("href", "#").startswith("#")
    policy = next(item["content"] for tag, item in found.tags if item.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_text_from_files_is_never_markup(page) -> None:
    found, _, _ = page
    assert [tag for tag, _ in found.tags if tag == "img"] == []
    assert len(found.scripts) == 5
    assert found.data["name"] == NAME
    assert any(row[0].startswith(NASTY) for case in found.data["cases"] for row in case["worst"])


def test_it_holds_the_tokens_that_were_sealed(page) -> None:
    """d of every case whose two side runs are found by their ids, from the sealed tensors and plain numpy."""
    found, _, out = page
    shown = json.loads((out / "plan.json").read_text())
    assert len(shown["cases"]) == len(found.data["cases"])
    for case in found.data["cases"]:
        held, told = case["tokens"], json.loads((out / "cases" / case["id"] / "comparison.json").read_text())
        assert held["all"] == held["drawn"] == len(unpacked(held["drift"])) == case["active_tokens"]
        assert sum(held["counts"]) == held["all"]
        largest = abs(unpacked(held["drift"])).max()
        assert largest == pytest.approx(told["metrics"]["max_abs_dlogp"], rel=1e-6)
        assert max(abs(row[6]) for row in case["worst"]) == pytest.approx(largest, rel=1e-6)


def test_the_drift_of_every_token_is_that_of_the_sealed_tensors(page) -> None:
    """Every multiset of d on the page is the difference of two sealed arrays of logprobs."""
    found, _, out = page
    sealed = [load_file(path)["logprobs"] for path in sorted(out.glob("sides/*/attempt-*/samples.safetensors"))]
    differences = {tuple(np.sort(right - left).tolist()) for left in sealed for right in sealed}
    for case in found.data["cases"]:
        assert tuple(np.sort(unpacked(case["tokens"]["drift"])).tolist()) in differences


def test_places_tell_cases_apart(page) -> None:
    found, _, out = page
    cases, axes = found.data["cases"], found.data["axes"]
    assert [axis["name"] for axis in axes] == ["rollout.dtype", "batch.size"]
    places = [tuple(case["place"]) for case in cases]
    assert len(set(places)) == len(places) == 3
    planned = json.loads((out / "plan.json").read_text())["cases"]
    for case, item in zip(cases, planned, strict=True):
        shown = {axis["name"]: axis["values"][place] for axis, place in zip(axes, case["place"], strict=True)}
        assert case["id"] == item["id"]
        assert shown == {name: str(item["axes"][name]) for name in shown}


def test_a_labelled_alternative_stands_beside_what_is_drawn(page) -> None:
    found, _, _ = page
    assert ("html", {"lang": "en"}) in found.tags
    drawn = [item for tag, item in found.tags if item.get("role") == "img"]
    assert drawn and all(item["aria-label"] for item in drawn)
    beside = [item for _, item in found.tags if item.get("role") == "region"]
    assert {f"{item['id']}-table" for item in drawn} <= {item.get("id") for item in beside}
    assert all(item["aria-label"] and item["tabindex"] == "0" for item in beside)
    headings = [item for tag, item in found.tags if tag == "th"]
    assert all(item.get("scope") in ("col", "row") for item in headings)


@pytest.mark.parametrize("room", [10, 100, 999])
def test_thinning_keeps_the_largest(room) -> None:
    drift = np.random.default_rng(3).normal(size=1000)
    drift[123], drift[777] = 50.0, -60.0
    kept = thinned(drift, room)
    assert len(kept) <= room and (np.diff(kept) > 0).all()
    assert {123, 777} <= set(kept.tolist())
    largest = set(np.argsort(-np.abs(drift))[: room // 4].tolist())
    assert largest <= set(kept.tolist())
    assert len(kept) > room * 0.7  # the others stand for the rest


def test_nothing_is_thinned_where_there_is_room() -> None:
    assert thinned(np.zeros(5), 5).tolist() == [0, 1, 2, 3, 4]


def _tokens(rollout, training):
    return SimpleNamespace(
        position=np.arange(len(rollout)),
        rollout_logp=np.array(rollout, dtype=np.float32),
        train_logp=np.array(training, dtype=np.float32),
    )


def test_the_histogram_is_of_every_finite_token() -> None:
    held = points(_tokens([-1.0] * 4, [-1.0, -0.5, -1.5, float("nan")]), 2)
    assert (held["all"], held["not_finite"], held["drawn"]) == (4, 1, 2)
    assert sum(held["counts"]) == 3 and len(held["counts"]) == BINS
    assert (held["edges"][0], held["edges"][-1]) == (-0.5, 0.5)
    assert (held["counts"][0], held["counts"][BINS // 2], held["counts"][-1]) == (1, 1, 1)


def test_equal_sides_have_one_bin() -> None:
    held = points(_tokens([-1.0, -2.0], [-1.0, -2.0]), 10)
    assert (held["counts"], held["edges"]) == ([2], [0.0, 0.0])
    assert points(None, 10) is None

"""Matrices beside a plugin's module: found without importing it, refused where they cannot be read."""

from __future__ import annotations

import json
import sys

import pytest

from xcfg.errors import PluginError
from xcfg.plugin.compatibility import Outcome, compatibility_of
from xcfg.plugin.inventory import PluginInfo, PluginState

INFO = PluginInfo(
    name="tried", distribution="xcfg-tried", version="1", state=PluginState.AVAILABLE, target="xcfg_tried_once.plugin"
)
ROWS = [
    {"knob": "rollout.dtype", "value": "float32", "outcome": "applied", "observed": "float32"},
    {"knob": "rollout.dtype", "value": "float16", "outcome": "refused", "reason": "no kernel for it here"},
    {"knob": "batch.size", "value": 1, "outcome": "substituted", "observed": 2, "reason": "two at once"},
]
CONTENT = {
    "schema": "xcfg.compatibility/1",
    "scorers": [{"scorer": "s", "role": "rollout", "engine": {"e": "1.0"}, "device": "cpu", "tried": ROWS}],
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "xcfg_tried_once"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_a_matrix_is_read_without_an_import(package) -> None:
    (package / "compatibility.json").write_text(json.dumps(CONTENT))
    (matrix,) = compatibility_of(INFO)
    assert "xcfg_tried_once" not in sys.modules
    assert [matrix.count(outcome) for outcome in Outcome] == [1, 1, 1]
    assert matrix.of("batch.size", 1).observed == 2
    assert matrix.of("batch.size", True) is None and matrix.of("batch.size", 3) is None


def test_a_package_without_one_has_tried_nothing(package) -> None:
    assert compatibility_of(INFO) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "unreadable"),
        (json.dumps({**CONTENT, "schema": "xcfg.compatibility/9"}), "expected 'xcfg.compatibility/1'"),
        (json.dumps({**CONTENT, "scorers": [{"scorer": "s"}]}), "unreadable"),
    ],
)
def test_a_damaged_file_is_named(package, text, words) -> None:
    (package / "compatibility.json").write_text(text)
    with pytest.raises(PluginError, match=words) as caught:
        compatibility_of(INFO)
    assert "compatibility.json" in str(caught.value)

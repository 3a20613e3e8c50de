"""``xcfg doctor`` on what the engines were tried with. The matrix is planted: no engine is asked."""

from __future__ import annotations

import pytest

from xcfg.cli import tried
from xcfg.model.scorer import Role
from xcfg.plugin.compatibility import Compatibility, Outcome, Tried


@pytest.fixture
def planted(monkeypatch):
    rows = [
        Tried(
            knob="rollout.dtype",
            value="float32",
            outcome=Outcome.SUBSTITUTED,
            observed="bfloat16",
            reason="no CPU path",
        ),
        Tried(knob="rollout.dtype", value="bfloat16", outcome=Outcome.APPLIED, observed="bfloat16"),
        Tried(knob="batch.size", value=64, outcome=Outcome.REFUSED, reason="too many at once"),
    ]
    matrix = Compatibility(scorer="fake", role=Role.ROLLOUT, engine={"xcfg": "0.0"}, device="cpu", tried=rows)
    monkeypatch.setattr(tried, "tried", lambda plugins: (matrix,))


def test_counts_and_versions(xcfg, planted) -> None:
    (found,) = xcfg("doctor", "--json").document["tried"]
    assert (found["applied"], found["refused"], found["substituted"]) == (1, 1, 1)
    assert found["engine"] == {"xcfg": "0.0"} and found["installed"]["xcfg"] not in (None, "0.0")
    assert "xcfg 0.0 (installed: " in xcfg("doctor").out


def test_an_experiments_values_are_looked_up(xcfg, write, planted) -> None:
    document = xcfg("doctor", write(), "--json").document
    (found,) = document["experiment"]
    assert (found["knob"], found["value"], found["outcome"]) == ("rollout.dtype", "float32", "substituted")
    assert "fp32-both" in found["cases"] and "baseline" not in found["cases"]
    assert "ran bfloat16: no CPU path" in xcfg("doctor", write()).out.replace("\n", " ")
    quiet = write(axes={}, cases=[], slices={})
    assert xcfg("doctor", quiet, "--json").document["experiment"] == []
    assert "no value of this experiment" in xcfg("doctor", quiet).out


def test_without_an_experiment_nothing_is_said_of_one(xcfg, planted) -> None:
    assert "experiment" not in xcfg("doctor", "--json").document


def test_an_experiment_that_does_not_load_keeps_its_code(xcfg, tmp_path) -> None:
    assert xcfg("doctor", tmp_path / "nowhere.yaml").code == 2

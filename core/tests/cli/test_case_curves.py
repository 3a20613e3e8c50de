"""Training curves of single cases: ``explain --curves CASE=FILE``. The scorers are fakes."""

import pytest

from .own_contract import write_contract

ROWS = 40


@pytest.fixture
def ran(xcfg, experiment, tmp_path):
    """A0 to A3 and A5 under a contract that everything passes."""
    path = experiment(contract=write_contract(tmp_path, 100.0))
    out = tmp_path / "out"
    profiles = [item for name in ("A0", "A1", "A2", "A3", "A5") for item in ("--profile", name)]
    assert xcfg("-q", "run", path, "--allow-fake", "--out", out, *profiles).code == 0
    return out


def write_curve(path, end, collapse=0):
    rows = [f"{step},{min(step / 20, 1) * end},{collapse if step == ROWS - 1 else 0}" for step in range(ROWS)]
    path.write_text("\n".join(["step,reward,collapse", *rows]) + "\n")
    return path


def rules(document):
    return [item["rule"] for item in document["findings"]]


def test_a_class_within_the_contract_and_worse_in_training_is_sensitive(xcfg, ran, tmp_path) -> None:
    good, bad = write_curve(tmp_path / "good.csv", 1.0), write_curve(tmp_path / "bad.csv", 0.5)
    given = ("--curves", f"A0={good}", "--curves", f"A1={bad}", "--curves", f"A3={good}")
    found = xcfg("explain", ran, *given, "--json").document
    (sensitive,) = [item for item in found["findings"] if item["rule"] == "ablation_behaviourally_sensitive"]
    assert sensitive["class"] == "arithmetic"
    assert sensitive["evidence"]["worse_downstream"] == {"reward": {"reference": 1.0, "case": 0.5}}
    plain = xcfg("explain", ran, "--json").document
    assert "ablation_behaviourally_sensitive" not in rules(plain)


def test_the_rules_read_a_cases_own_curves(xcfg, ran, tmp_path) -> None:
    fallen = write_curve(tmp_path / "fallen.csv", 1.0, collapse=1)
    plain = rules(xcfg("explain", ran, "--json").document)
    found = xcfg("explain", ran, "--curves", f"A1={fallen}", "--json").document["findings"]
    own = [item for item in found if "case" in item["evidence"] and item["rule"] not in plain]
    assert [item["rule"] for item in own] == ["collapse_with_clean_alignment"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("nobody={good}",), "'nobody' is not in the plan"),
        (("A1={good}", "A1={good}"), "given twice"),
        (("A1=gone.csv",), "gone.csv"),
    ],
)
def test_bad_curves_are_told(xcfg, ran, tmp_path, given, said) -> None:
    good = write_curve(tmp_path / "good.csv", 1.0)
    done = xcfg("explain", ran, *(part for text in given for part in ("--curves", text.format(good=good))))
    assert done.code == 2
    assert said in done.err

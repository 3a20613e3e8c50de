"""Run-to-run noise becomes a finding, and silence where there is none."""

from xcfg.comparator.repeat import repeat_findings
from xcfg.model.attempt import Measured


def test_other_bits_are_a_finding() -> None:
    repeats = {"count": 3, "bitwise_equal": False, "max_abs_difference": 0.0081}
    (finding,) = repeat_findings("rollout", Measured(repeats=repeats))
    assert (finding.source_class, finding.evidence["side"], finding.evidence["scored"]) == ("execution", "rollout", 3)
    assert finding.evidence["max_abs_difference"] == 0.0081


def test_equal_bits_or_a_single_scoring_are_none() -> None:
    equal = {"count": 3, "bitwise_equal": True, "max_abs_difference": 0.0}
    assert repeat_findings("training", Measured(repeats=equal)) == ()
    assert repeat_findings("training", Measured()) == ()

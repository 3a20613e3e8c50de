"""Rules 3, 4 and 6: which curve moves first, and a collapse with clean alignment."""

import math

import numpy as np
import pytest
from attrs import evolve

from xcfg.analyzer.curves import Curves
from xcfg.analyzer.evidence import Evidence
from xcfg.analyzer.rule_curves import collapse_with_clean_alignment, gradients_before_kl, kl_before_gradients
from xcfg.model.status import Status

COLLAPSE = [*np.linspace(0.1, 0.9, 20), *np.linspace(0.85, 0.0, 10)]


def test_rule_3_kl_first(evidence, moving):
    given = evidence(1.0, columns={"kl": moving(0.01, 10), "gradnorm": moving(1.0, 20), "update_norm": moving(1.0)})
    found = kl_before_gradients(given)
    assert (found.source_class, found.subclass) == ("unresolved", "logprob-plumbing")
    assert (found.rule, found.confidence) == ("kl_before_gradients", "medium")
    assert (found.evidence["first"], found.evidence["step"], found.evidence["lead"]) == ("kl", 10, 10)
    assert found.evidence["moved"]["kl"]["quiet_until"] == 9
    assert found.evidence["moved"]["kl"]["opening_level"] == 0.01
    assert found.evidence["others"]["gradnorm"]["step"] == 20
    assert found.evidence["others"]["update_norm"]["movement"] == "steady"
    assert gradients_before_kl(given) is None


@pytest.mark.parametrize("name", ["kl", "ratio"])
@pytest.mark.parametrize("other", ["gradnorm", "update_norm"])
def test_rules_3_and_4_mirror_each_other(evidence, moving, name, other):
    first = evidence(1.0, columns={name: moving(0.5, 10), other: moving(1.0, 20)})
    later = evidence(1.0, columns={name: moving(0.5, 20), other: moving(1.0, 10)})
    assert kl_before_gradients(first).evidence["first"] == name
    assert gradients_before_kl(first) is None
    assert kl_before_gradients(later) is None
    assert gradients_before_kl(later).evidence["first"] == other


def test_rule_4_gradients_first(evidence, moving):
    found = gradients_before_kl(evidence(0.1, columns={"kl": moving(0.01, 20), "gradnorm": moving(1.0, 10)}))
    assert (found.source_class, found.subclass, found.confidence) == ("none", "algorithmic", "medium")
    assert found.rule == "gradients_before_kl"


def test_the_earliest_curve_of_each_group_counts(evidence, moving):
    """KL at 10 and update norm at 5: gradients first, whatever the gradient norm does at 20."""
    given = evidence(0.1, columns={"kl": moving(0.1, 10), "gradnorm": moving(1.0, 20), "update_norm": moving(1.0, 5)})
    assert gradients_before_kl(given).evidence["first"] == "update_norm"
    assert kl_before_gradients(given) is None


@pytest.mark.parametrize(
    "columns",
    [
        {"kl": (0.1, 10), "gradnorm": (1.0, 10)},  # the same step
        {"kl": (0.1, None), "gradnorm": (1.0, None)},  # nothing moves
        {"kl": (0.1, 10)},  # the other curve is missing
        {"gradnorm": (1.0, 10)},
        {"kl": (0.1, 28), "gradnorm": (1.0, None)},  # not confirmed
    ],
)
def test_no_order_can_be_told(evidence, moving, columns):
    given = evidence(1.0, columns={name: moving(*shape) for name, shape in columns.items()})
    assert kl_before_gradients(given) is None
    assert gradients_before_kl(given) is None


def test_one_step_of_lead_is_enough_and_makes_the_finding_unsure(evidence, moving):
    for lead, confidence in ((1, "low"), (2, "low"), (3, "medium")):
        found = kl_before_gradients(evidence(1.0, columns={"kl": moving(0.1, 10), "gradnorm": moving(1.0, 10 + lead)}))
        assert (found.evidence["lead"], found.confidence) == (lead, confidence)


def test_a_curve_logged_too_seldom_leaves_the_order_open(comparison, moving):
    """Gradient norm every tenth step: quiet at 10 and out at 20, so it may have moved before KL does at 12 or after."""
    steps = np.arange(120)
    kl = np.where(steps >= 72, 1.0, 0.1)
    sparse = np.where(steps >= 75, 9.0, 1.0)
    sparse[steps % 10 != 0] = math.nan
    given = Evidence(comparison=comparison(1.0), curves=Curves(step=steps, columns={"kl": kl, "gradnorm": sparse}))
    assert kl_before_gradients(given) is None
    sparse = np.where(steps >= 85, 9.0, 1.0)
    sparse[steps % 10 != 0] = math.nan
    given = Evidence(comparison=comparison(1.0), curves=Curves(step=steps, columns={"kl": kl, "gradnorm": sparse}))
    assert kl_before_gradients(given).evidence["lead"] == 9


def test_a_gradient_norm_that_was_logged_only_before_tells_nothing(evidence, moving):
    short = [1.0] * 9 + [math.nan] * 21
    assert kl_before_gradients(evidence(1.0, columns={"kl": moving(0.1, 10), "gradnorm": short})) is None


def test_rule_3_is_unsure_where_the_compared_tokens_agree(evidence, moving):
    found = kl_before_gradients(evidence(0.1, columns={"kl": moving(0.1, 10), "gradnorm": moving(1.0)}))
    assert found.confidence == "low"
    assert "the compared tokens agree" in found.advice


def test_assumed_identity_lowers_every_curve_rule(evidence, moving):
    kl = {"kl": moving(0.1, 10), "gradnorm": moving(1.0)}
    gradients = {"kl": moving(0.1), "gradnorm": moving(1.0, 10)}
    assert kl_before_gradients(evidence(1.0, assumed=("checkpoint",), columns=kl)).confidence == "low"
    assert gradients_before_kl(evidence(0.1, assumed=("checkpoint",), columns=gradients)).confidence == "low"
    clean = evidence(0.1, assumed=("checkpoint",), columns={"reward": COLLAPSE})
    assert collapse_with_clean_alignment(clean).confidence == "low"


def test_rule_6_collapse_with_clean_alignment(evidence):
    found = collapse_with_clean_alignment(evidence(0.25, columns={"reward": COLLAPSE}))
    assert (found.source_class, found.subclass, found.confidence) == ("none", "algorithmic", "medium")
    assert found.rule == "collapse_with_clean_alignment"
    assert found.evidence["reward"]["peak"] == pytest.approx(0.9 - 0.8 / 19)
    assert found.evidence["collapse_flagged_at"] is None
    assert found.evidence["max_abs_dlogp"] == 0.25


def test_rule_6_takes_the_flag_of_the_log_after_a_rise(evidence):
    rise = [*np.linspace(0.1, 0.9, 20), *[0.9] * 10]
    late, early = [0.0] * 25 + [1.0] * 5, [1.0] + [0.0] * 29
    found = collapse_with_clean_alignment(evidence(0.1, columns={"reward": rise, "collapse": late}))
    assert (found.evidence["collapse_flagged_at"], found.confidence) == (25, "low")
    assert collapse_with_clean_alignment(evidence(0.1, columns={"reward": rise, "collapse": early})) is None
    assert collapse_with_clean_alignment(evidence(0.1, columns={"kl": rise, "collapse": late})) is None


@pytest.mark.parametrize(
    ("largest", "columns"),
    [
        (1.0, {"reward": COLLAPSE}),  # not clean
        (0.1, None),
        (0.1, {"reward": COLLAPSE[:6]}),  # too short
        (0.1, {"reward": COLLAPSE[:20]}),  # no collapse
        (0.1, {"reward": COLLAPSE[20:]}),  # no rise
        (0.1, {"kl": COLLAPSE}),
    ],
)
def test_rule_6_is_silent(evidence, largest, columns):
    assert collapse_with_clean_alignment(evidence(largest, columns=columns)) is None


@pytest.mark.parametrize("status", [status for status in Status if not status.judged])
def test_curve_rules_are_silent_about_what_was_not_judged(evidence, moving, status):
    given = evidence(0.1, columns={"kl": moving(0.1, 10), "gradnorm": moving(1.0), "reward": COLLAPSE})
    given = evolve(given, comparison=evolve(given.comparison, status=status))
    assert kl_before_gradients(given) is None
    assert gradients_before_kl(given) is None
    assert collapse_with_clean_alignment(given) is None

"""All rules together: which fire, what outweighs what, and that nothing else changes."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcfg.analyzer.evidence import Evidence
from xcfg.analyzer.rules import decide
from xcfg.model.codec import unstructure
from xcfg.model.status import Status

COLLAPSE = [*np.linspace(0.1, 0.9, 20), *np.linspace(0.85, 0.0, 10)]
RANKS = [(0, 0, 0.1, 0.01, 500), (0, 1, 1.0, 0.5, 480)]


def rules(found):
    return [finding.rule for finding in found]


@pytest.mark.parametrize(
    ("largest", "columns", "ranks", "expected"),
    [
        (0.1, {}, [], []),
        (1.0, {}, [], ["infrastructure_not_algorithm"]),
        (1.0, {}, RANKS, ["infrastructure_not_algorithm", "only_some_ranks_drift"]),
        (1.0, {"reward": (0.5,)}, [], ["infrastructure_not_algorithm", "healthy_run_still_drifts"]),
        (
            1.0,
            {"kl": (0.1, 10), "gradnorm": (1.0, 20)},
            RANKS,
            ["infrastructure_not_algorithm", "kl_before_gradients", "only_some_ranks_drift"],
        ),
        (0.1, {"kl": (0.1, 20), "gradnorm": (1.0, 10)}, [], ["gradients_before_kl"]),
        (0.1, {"kl": (0.1,), "gradnorm": (1.0,)}, [], []),
    ],
)
def test_which_rules_fire(evidence, moving, largest, columns, ranks, expected):
    built = {name: moving(*shape) for name, shape in columns.items()}
    assert rules(decide(evidence(largest, columns=built, ranks=ranks))) == expected


def test_measured_drift_outweighs_gradients_that_move_first(evidence, moving):
    first, fourth = decide(evidence(1.0, columns={"kl": moving(0.1, 20), "gradnorm": moving(1.0, 10)}))
    assert (first.rule, first.confidence) == ("infrastructure_not_algorithm", "high")
    assert (fourth.rule, fourth.confidence) == ("gradients_before_kl", "low")
    assert fourth.evidence["outweighed_by"] == "infrastructure_not_algorithm"
    assert "measured drift comes first" in fourth.advice


def test_measured_agreement_outweighs_a_kl_that_moves_first(evidence, moving):
    columns = {"reward": COLLAPSE, "kl": moving(0.1, 10), "gradnorm": moving(1.0, 20)}
    third, sixth = decide(evidence(0.1, columns=columns))
    assert (third.rule, third.confidence) == ("kl_before_gradients", "low")
    assert third.evidence["outweighed_by"] == "collapse_with_clean_alignment"
    assert (sixth.rule, sixth.confidence) == ("collapse_with_clean_alignment", "medium")


@pytest.mark.parametrize("status", [status for status in Status if not status.judged])
def test_what_was_not_judged_has_no_finding(evidence, moving, status):
    columns = {"reward": COLLAPSE, "kl": moving(0.1, 10), "gradnorm": moving(1.0, 20)}
    assert decide(evidence(1.0, status=status, columns=columns, ranks=RANKS)) == ()


CURVE = st.lists(st.floats(0.0, 100.0), min_size=12, max_size=12)


@given(
    largest=st.sampled_from([0.0, 0.25, 0.26, 3.0]),
    assumed=st.sampled_from([(), ("checkpoint",)]),
    columns=st.dictionaries(
        st.sampled_from(["reward", "kl", "ratio", "gradnorm", "update_norm", "collapse", "eval_x"]), CURVE
    ),
)
def test_findings_are_pure_plain_and_consistent(comparison, curves, largest, assumed, columns):
    built = Evidence(
        comparison=comparison(largest, assumed=assumed, ranks=RANKS), curves=curves(**columns) if columns else None
    )
    found = decide(built)
    assert found == decide(built)
    names = rules(found)
    assert len(set(names)) == len(names)
    assert not {"kl_before_gradients", "gradients_before_kl"} <= set(names)
    assert not {"infrastructure_not_algorithm", "collapse_with_clean_alignment"} <= set(names)
    assert ("infrastructure_not_algorithm" in names) == (largest > 0.25)
    for finding in found:
        assert finding.confidence in {"low", "medium"} if assumed else {"low", "medium", "high"}
        assert finding.advice
        json.dumps(unstructure(finding), allow_nan=False)

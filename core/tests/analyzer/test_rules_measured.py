"""Rules 1, 2 and 5: what the two sides' own logprobs say."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from xcfg.analyzer.evidence import Evidence
from xcfg.analyzer.rule_measured import healthy_run_still_drifts, infrastructure_not_algorithm
from xcfg.analyzer.rule_ranks import only_some_ranks_drift
from xcfg.model.status import Status

UNJUDGED = [status for status in Status if not status.judged]


def test_rule_1_fires_on_a_proven_violation(evidence):
    found = infrastructure_not_algorithm(evidence(1.0))
    assert (found.source_class, found.subclass, found.confidence) == ("unresolved", "infrastructure", "high")
    assert found.rule == "infrastructure_not_algorithm"
    assert found.evidence["max_abs_dlogp"] == 1.0
    assert found.evidence["threshold"] == 0.25
    assert found.evidence["worst"] == {"sequence": "s1", "position": 2}
    assert found.evidence["assumed"] == ()
    assert "not in the algorithm or the reward" in found.advice


def test_rule_1_is_less_sure_of_an_assumed_identity_and_names_what_to_prove(evidence):
    found = infrastructure_not_algorithm(evidence(1.0, assumed=("checkpoint", "temperature")))
    assert found.confidence == "medium"
    assert "checkpoint, temperature" in found.advice


def test_rule_1_is_silent_at_the_limit_and_below(evidence):
    assert infrastructure_not_algorithm(evidence(0.25)) is None
    assert infrastructure_not_algorithm(evidence(0.0)) is None


@pytest.mark.parametrize("status", UNJUDGED)
def test_measured_rules_are_silent_about_what_was_not_judged(evidence, moving, status):
    given_ = evidence(1.0, status=status, columns={"kl": moving(0.1)}, ranks=[(0, 0, 1.0, 0.5, 50), (0, 1, 0.1, 0, 50)])
    assert infrastructure_not_algorithm(given_) is None
    assert healthy_run_still_drifts(given_) is None
    assert only_some_ranks_drift(given_) is None


def test_rule_2_fires_where_the_run_looks_healthy(evidence, moving):
    found = healthy_run_still_drifts(evidence(1.0, columns={"reward": moving(0.5), "kl": moving(0.01)}))
    assert (found.source_class, found.subclass) == ("unresolved", "infrastructure")
    assert found.rule == "healthy_run_still_drifts"
    assert found.confidence == "high"
    assert found.evidence["steps"] == (0, 29)
    assert found.evidence["curves"] == {"kl": "steady", "reward": "holds"}


@pytest.mark.parametrize("largest", [0.1, 0.25])
def test_rule_2_is_silent_where_the_contract_holds(evidence, moving, largest):
    assert healthy_run_still_drifts(evidence(largest, columns={"kl": moving(0.01)})) is None


def test_rule_2_is_silent_without_curves_or_health(evidence, moving):
    assert healthy_run_still_drifts(evidence(1.0)) is None
    assert healthy_run_still_drifts(evidence(1.0, columns={"kl": moving(0.01, 10)})) is None
    assert healthy_run_still_drifts(evidence(1.0, columns={"kl": [0.01, 0.01]})) is None


RANKS = [(0, 0, 0.2, 0.01, 500), (0, 1, 2.0, 0.5, 480), (1, 0, 0.25, 0.02, 510), (1, 1, 1.0, 0.4, 490)]


def test_rule_5_names_the_ranks_and_what_to_rule_out(evidence):
    found = only_some_ranks_drift(evidence(2.0, ranks=RANKS))
    assert (found.source_class, found.subclass, found.confidence) == ("unresolved", "distributed", "high")
    assert found.rule == "only_some_ranks_drift"
    assert [(item["rollout_rank"], item["train_rank"]) for item in found.evidence["drifting"]] == [(0, 1), (1, 1)]
    assert [(item["rollout_rank"], item["train_rank"]) for item in found.evidence["clean"]] == [(0, 0), (1, 0)]
    assert found.evidence["training_ranks"] == (1,)
    assert found.evidence["rollout_ranks"] == ()
    assert found.evidence["rule_out"] == (
        "placement",
        "shard bounds",
        "collectives",
        "active counts",
        "masks",
        "cache positions",
    )
    assert found.evidence["differing_metadata"] == (
        {"side": "training", "field": "compute_dtype", "drifting": ("float16",), "clean": ("bfloat16",)},
    )
    assert "training ranks 1" in found.advice


def test_rule_5_equality_with_the_limit_is_clean(evidence):
    found = only_some_ranks_drift(evidence(0.3, ranks=[(0, 0, 0.25, 0.01, 100), (0, 1, 0.3, 0.2, 100)]))
    assert [item["train_rank"] for item in found.evidence["clean"]] == [0]


@pytest.mark.parametrize(
    ("largest", "ranks"),
    [
        (2.0, []),
        (2.0, [(0, 0, 2.0, 0.5, 500)]),
        (2.0, [(0, 0, 2.0, 0.5, 500), (0, 1, 1.0, 0.5, 500)]),  # all drift
        (0.2, [(0, 0, 0.2, 0.1, 500), (0, 1, 0.1, 0.0, 500)]),  # none does
        (2.0, [(0, 0, 2.0, 0.5, 500), (0, 1, 0.0, 0.0, 15)]),  # the clean one has too few tokens
        (2.0, [(0, 0, 2.0, 0.5, 500), (0, 1, 0.0, 0.0, 0)]),  # or none
    ],
)
def test_rule_5_is_silent(evidence, largest, ranks):
    assert only_some_ranks_drift(evidence(largest, ranks=ranks)) is None


def test_rule_5_lists_clean_ranks_of_few_tokens_apart(evidence):
    found = only_some_ranks_drift(evidence(2.0, ranks=[*RANKS, (2, 1, 0.1, 0.1, 3)]))
    assert [item["rollout_rank"] for item in found.evidence["too_few_tokens"]] == [2]
    assert found.evidence["training_ranks"] == (1,)


def test_rule_5_is_unsure_of_one_outlier_in_ranks_that_are_alike(evidence):
    """Mean abs(d) 0.011 against 0.010: the rank does not stand apart, one of its tokens does."""
    found = only_some_ranks_drift(evidence(0.3, ranks=[(0, 0, 0.2, 0.010, 500), (0, 1, 0.3, 0.011, 500)]))
    assert found.confidence == "low"
    assert "rare outlier" in found.advice
    edge = only_some_ranks_drift(evidence(0.3, ranks=[(0, 0, 0.2, 0.010, 500), (0, 1, 0.3, 0.020, 500)]))
    assert edge.confidence == "high"


def test_rule_5_is_less_sure_of_an_assumed_identity(evidence):
    assert only_some_ranks_drift(evidence(2.0, ranks=RANKS, assumed=("position_ids",))).confidence == "medium"


@given(order=st.permutations(range(4)))
def test_the_order_of_ranks_changes_nothing(comparison, order):
    plain = comparison(2.0, ranks=RANKS)
    turned = evolve(plain, per_rank=[plain.per_rank[at] for at in order])
    assert only_some_ranks_drift(Evidence(comparison=turned)) == only_some_ranks_drift(Evidence(comparison=plain))


@given(
    ranks=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 40)),
        max_size=8,
        unique_by=lambda item: item[:2],
    )
)
def test_every_pair_with_tokens_is_named_once(comparison, ranks):
    found = only_some_ranks_drift(Evidence(comparison=comparison(1.0, ranks=ranks)))
    if found is None:
        return
    named = [
        (item["rollout_rank"], item["train_rank"])
        for group in ("drifting", "clean", "too_few_tokens")
        for item in found.evidence[group]
    ]
    assert sorted(named) == sorted(item[:2] for item in ranks if item[4])
    assert found.evidence["drifting"]
    assert found.evidence["clean"]

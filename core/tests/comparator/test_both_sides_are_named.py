"""Every finding and reason of a comparison names the side it is about."""

from __future__ import annotations

import math

import numpy as np
import pytest
from attrs import evolve

from xcfg.comparator import quantile
from xcfg.comparator.arrays import ArrayPairs
from xcfg.comparator.compare import compare
from xcfg.comparator.drift import drift
from xcfg.comparator.frozen import frozen_tokens
from xcfg.comparator.pairing import ordered_ids
from xcfg.comparator.tolerance import lowest, row
from xcfg.model.sample import TokenBatch
from xcfg.model.status import Status

ROWS = [[-1.0], [-2.0]]


def placed(name, bad, good):
    """Rollout and training, of which ``name`` is the bad one."""
    return (bad, good) if name == "rollout" else (good, bad)


@pytest.mark.parametrize("name", ["rollout", "training"])
def test_faults_name_their_side(contract, side, name):
    good = side(ROWS)
    lost = evolve(side(ROWS), expected_ranks=2)
    found, _ = compare(*placed(name, lost, good), contract)
    assert (found.reason, found.contract) == (f"{name} lacks rank 1 of 2", contract.ref)
    stepped = side(ROWS)
    stepped = evolve(stepped, identity=evolve(stepped.identity, state_before=""))
    reason = f"state_digest: {name} does not prove its model state before and after scoring"
    assert compare(*placed(name, stepped, good), contract)[0].reason == reason
    wrong, _ = compare(*placed(name, side([[-1.0], [math.nan]]), good), contract)
    assert f"active {name} logprobs are not finite" in wrong.reason


@pytest.mark.parametrize("name", ["rollout", "training"])
def test_the_finding_of_several_dtypes_names_its_side(contract, side, name):
    mixed = side(ROWS, dtype=["float32", "bfloat16"], world=2, ranks=[0, 1])
    (finding,) = compare(*placed(name, mixed, side(ROWS)), contract)[0].findings
    assert finding.evidence["side"] == name


def test_a_foreign_batch_is_told_for_each_side_and_beside_other_faults(contract, side):
    tokens = TokenBatch(ids=["s0", "s1"], prompts=[[1], [1]], responses=[[5], [6]], action_masks=[[True], [True]])
    lost = evolve(side(ROWS), expected_ranks=2)
    reason = compare(lost, side(ROWS), contract, frozen=frozen_tokens(tokens))[0].reason.split("; ")
    assert reason[0] == "rollout lacks rank 1 of 2"
    assert [item.split(" scored")[0] for item in reason[1:]] == [
        "also invalid_identity: token_digest: rollout",
        "also invalid_identity: token_digest: training",
    ]


def test_one_array_on_both_sides_is_said(contract, side):
    held = side(ROWS)
    found, _ = compare(held, held, contract)
    assert found.reason == "both sides are the same logprobs in memory, not two measurements"


def test_a_side_without_ranks_has_no_dtype(contract):
    assert lowest([]) == ""
    assert row("float32", contract).reason == ""


def test_ids_that_are_no_text_are_ordered_all_the_same():
    assert ordered_ids(["b", "\udc80", "a"]) == ("a", "b", "\udc80")


def test_infinities_of_a_replica_are_no_warning(contract, side, recwarn):
    twice = side([[-math.inf], [-math.inf], [-1.0]], sequences=[0, 0, 0], ranks=[0, 1, 2], world=3)
    assert compare(twice, side([[-1.0]]), contract)[0].status is Status.NON_FINITE
    assert not recwarn.list


def test_a_crowded_bin_is_read_again(monkeypatch):
    monkeypatch.setattr(quantile, "LIMIT", 2)
    d = 0.5 + 2.0**-40 * np.arange(21)
    held = ArrayPairs(rollout=np.zeros(21), train=d, lengths=np.array([21]), mask=None, tokens=None, names=None, rank=0)
    found = drift(held, (0.5, 2.0))
    assert found.metrics["p95_abs_dlogp"] == np.percentile(d, 95.0)

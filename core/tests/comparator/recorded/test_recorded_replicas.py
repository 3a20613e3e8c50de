"""Replicas of recorded sequences: what is counted over all of them, and which of them judges."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
from attrs import evolve

from xcfg.comparator.recorded.compare import Terms, compare_recorded
from xcfg.model.status import Status


@pytest.fixture(autouse=True)
def no_warnings():
    """What a side recorded is told in a result, never by a warning of numpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def replicas(result):
    (found,) = [item for item in result.findings if item.rule == "replicas_bitwise_equal"]
    return found.evidence


def test_every_replica_of_every_sequence_is_counted(judge, record):
    """b agrees before and after a and c disagree: by 1/4 in one token of a, by 1/2 and 1/8 in both of c; a third
    replica of a agrees with its first."""
    rows = {"a": [-1.0, -2.25], "b": [-1.0, -2.0], "c": [-1.5, -2.125], "d": [-1.0, -2.0]}
    rollout = [record(id, [-1.0, -2.0], rank=0) for id in rows]
    rollout += [record(id, values, rank=1) for id, values in rows.items() if id != "d"]
    rollout += [record("a", [-1.0, -2.0], rank=2)]
    evidence = replicas(judge(rollout, [record(id, [-1.0, -2.0]) for id in rows]))
    assert (evidence["sequences_replicated"], evidence["sequences_disagreeing"]) == (3, 2)
    assert (evidence["tokens_compared"], evidence["tokens_unequal"], evidence["max_abs_difference"]) == (8, 3, 0.5)


def test_the_finding_is_of_the_side_that_disagrees(judge, record):
    single, twice = [record("a", [-1.0])], [record("a", [-1.0], rank=0), record("a", [-1.5], rank=1)]
    for sides, name in (((twice, single), "rollout"), ((single, twice), "training")):
        (found,) = [item for item in judge(*sides).findings if item.rule == "replicas_bitwise_equal"]
        assert found.evidence["side"] == name
        assert found.advice.startswith(f"the {name} ranks hold replicas")


def test_a_difference_that_is_no_number_is_unknown(judge, record):
    result = judge([record("a", [-1.0], rank=0), record("a", [math.nan], rank=1)], [record("a", [-1.0])])
    assert replicas(result)["max_abs_difference"] is None


@pytest.mark.parametrize("wide", [False, True])
def test_any_bits_that_were_recorded_are_read_in_silence(judge, record, wide):
    """A signalling NaN, which raises a flag of the processor when it is converted or subtracted."""
    bits = np.array([0x7FF4000000000000], np.uint64) if wide else np.array([0x7FA00000], np.uint32)
    broken = evolve(record("a", [-1.0], rank=1), logprobs=bits.view(np.float64 if wide else np.float32))
    result = judge([record("a", [-1.0], rank=0, wide=wide), broken], [record("a", [-1.0])])
    assert result.status is Status.NON_FINITE
    json.dumps(list(replicas(result)["first"]["logprobs"]), allow_nan=False)


@pytest.mark.parametrize("ranks", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_a_replica_with_a_nan_judges_before_one_that_is_far_off(contract, record, tmp_path, ranks):
    values = dict(zip(ranks, ([-1.0, -2.0], [-1.0, math.nan], [-1.0, -9.0]), strict=True))
    rollout = [record("a", values[rank], rank=rank) for rank in range(3)]
    found = compare_recorded(rollout, [record("a", [-1.0, -2.0])], Terms(contract=contract), tmp_path)
    (block,) = found.pairs.blocks()
    assert (block.rows.tolist(), math.isnan(block.rollout[1])) == ([ranks[1]], True)

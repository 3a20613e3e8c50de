"""Runs of zeros and coarse storage over several blocks, and where exactly each finding begins."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.comparator import blocks
from xcfg.comparator.arrays import ArrayPairs
from xcfg.comparator.observation import observation_findings

FINE = [-0.1234567, -1.7654321, -2.3456789, -3.1415926]


def pairs(rollout, train, mask=None):
    return ArrayPairs(
        rollout=np.concatenate([np.asarray(row, dtype=np.float64) for row in rollout]),
        train=np.concatenate([np.asarray(row, dtype=np.float64) for row in train]),
        lengths=np.array([len(row) for row in rollout]),
        mask=None if mask is None else np.concatenate(mask).astype(bool),
        tokens=None,
        names=None,
        rank=0,
    )


def found(train, limit=1e-3, rollout=None, mask=None):
    """Findings about both sides; the rollout is fine and full unless it is given."""
    fine = [[FINE[place % 4] for place in range(len(row))] for row in train]
    return observation_findings(pairs(fine if rollout is None else rollout, train, mask), limit)


def test_the_finding_of_zeros_in_full():
    (finding,) = found([[-1.1, 0.0, 0.0, 0.0, FINE[0]], FINE])
    assert (finding.source_class, finding.subclass, finding.rule) == ("logical", "observation", "exact_zero_logprobs")
    assert finding.confidence == "medium"
    first = finding.evidence["first"]
    assert (first["sequence"], first["position"]) == ("0", 1)
    counts = {name: finding.evidence[name] for name in ("side", "runs", "longest_run", "tokens")}
    assert counts == {"side": "training", "runs": 1, "longest_run": 3, "tokens": 3}
    assert "training" in finding.advice


@pytest.mark.parametrize("size", [1, 8, 1 << 15])
def test_runs_are_counted_over_all_blocks(monkeypatch, size):
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", size)
    rows = [
        [FINE[0], 0.0, 0.0, FINE[1]],
        [0.0] * 4 + [FINE[0]] + [0.0] * 3,
        [0.0, 0.0, FINE[0]],
        [FINE[2], 0.0, 0.0, 0.0],
    ]
    (finding,) = found(rows)
    counts = {name: finding.evidence[name] for name in ("runs", "longest_run", "tokens")}
    assert counts == {"runs": 3, "longest_run": 4, "tokens": 10}
    assert (finding.evidence["first"]["sequence"], finding.evidence["first"]["position"]) == ("1", 0)


def test_zeros_on_both_sides_of_a_masked_token_are_no_run():
    mask = [[1, 1, 0, 1, 1], [1, 1, 1, 1, 1]]
    assert not found([[0.0, 0.0, -1.0, 0.0, 0.0], [*FINE, -1.1]], mask=mask)
    # two short runs: the places in the row go on, the positions do not, and the other way round at the row's end
    assert not found([[0.0, 0.0], [0.0, 0.0], FINE], mask=[[1, 1], [1, 1], [1] * 4])
    assert not found([[0.0, 0.0], [FINE[0], FINE[1], 0.0, 0.0], FINE], mask=[[1, 1], [0, 0, 1, 1], [1] * 4])


def test_the_first_of_several_runs_is_named_and_a_short_one_before_it_is_not():
    (finding,) = found([[0.0, FINE[0], 0.0, 0.0, 0.0, FINE[1], 0.0, 0.0, 0.0, 0.0], FINE])
    assert (finding.evidence["first"]["position"], finding.evidence["longest_run"]) == (2, 4)


def coarse(values, limit, rollout=None):
    """Findings about coarse storage of the training side."""
    kept = [values, values]
    return [item for item in found(kept, limit, rollout) if item.rule == "logprobs_coarser_than_limit"]


def test_the_finding_of_coarse_storage_in_full():
    (finding,) = coarse([-1.0, -1.5, -2.5, -3.75], 2.0**-8)
    assert (finding.source_class, finding.subclass) == ("logical", "observation")
    assert dict(finding.evidence) == {
        "side": "training",
        "stored_dtype": "bfloat16",
        "largest_abs_logp": 3.75,
        "spacing": 2.0**-6,  # bfloat16 keeps 7 bits: from 2 to 4 the values are 2 / 128 apart
        "limit": 2.0**-8,
        "spacing_over_limit": 4.0,
    }


def test_a_spacing_of_the_limit_itself_is_fine_enough():
    values = [-1.0, -1.5, -2.5, -3.75]
    assert not coarse(values, 2.0**-6)
    assert coarse(values, float(np.nextafter(2.0**-6, 0.0)))
    assert not coarse(values, None)
    assert not coarse(values, 0.0)


def test_three_distinct_values_are_needed_and_zero_is_none():
    assert not coarse([-1.0, -1.5, 0.0, -1.0], 1e-4)
    assert coarse([-1.0, -1.5, 0.0, -2.0], 1e-4)


@pytest.mark.parametrize("size", [1, 1 << 15])
def test_values_of_all_blocks_count_together(monkeypatch, size):
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", size)
    rule = "logprobs_coarser_than_limit"
    assert rule in [item.rule for item in found([[-1.0], [-1.5], [-2.0]], 1e-4)]
    assert rule not in [item.rule for item in found([[-1.0, -1.5, -2.0], [FINE[0]]], 1e-4)]
    assert rule not in [item.rule for item in found([[FINE[0]], [-1.0, -1.5, -2.0]], 1e-4)]
    # one value with all 8 bits of float16 that bfloat16 lacks, seen before or after the others
    narrow = -(1.0 + 2.0**-10)
    for rows in ([[narrow], [-1.0, -1.5, -2.0]], [[-1.0, -1.5, -2.0], [narrow]]):
        (finding,) = [item for item in found(rows, 1e-4) if item.rule == rule]
        assert finding.evidence["stored_dtype"] == "float16"


@pytest.mark.parametrize(("dtype", "bits"), [("bfloat16", 7), ("float16", 10)])
def test_one_bit_more_than_a_format_has_does_not_fit_it(dtype, bits):
    fits = [-1.0, -1.5, -(1.0 + 2.0**-bits)]
    (finding,) = coarse(fits, 1e-6)
    assert finding.evidence["stored_dtype"] == dtype
    for extra in (2.0 ** -(bits + 1), 2.0**-52):
        more = coarse([*fits, -(1.0 + extra)], 1e-6)
        assert [item.evidence["stored_dtype"] for item in more] in ([], ["float16"])
        assert dtype not in [item.evidence["stored_dtype"] for item in more]


@pytest.mark.parametrize(("dtype", "exponent"), [("float16", -14), ("bfloat16", -126)])
def test_a_value_below_the_normal_range_of_a_format_does_not_fit_it(dtype, exponent):
    bits = {"float16": 1.0 + 2.0**-10, "bfloat16": 1.0}[dtype]
    values = [-bits, -1.5, -2.0]
    edge = -(2.0**exponent)
    assert [item.evidence["stored_dtype"] for item in coarse([*values, edge], 1e-6)] == [dtype]
    assert not coarse([*values, edge / 2], 1e-6)


def test_the_spacing_of_tiny_values_is_that_of_the_smallest_normal_ones():
    tiny = [-(2.0**-14), -1.5 * 2.0**-14, -(1.0 + 2.0**-10) * 2.0**-14]
    (finding,) = coarse(tiny, 1e-9)
    assert (finding.evidence["stored_dtype"], finding.evidence["spacing"]) == ("float16", 2.0**-24)
    assert finding.evidence["largest_abs_logp"] == 1.5 * 2.0**-14

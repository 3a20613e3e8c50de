"""The limit and its dtype: equality passes and one ulp above fails, whichever side states the lower precision."""

from __future__ import annotations

import itertools
import math

import pytest

from xcfg.builtin.contracts import shipped_contracts
from xcfg.model.status import Status
from xcfg.model.tolerance import DEFAULT_CONTRACT, DTYPE_ORDER

SHIPPED = next(contract for contract in shipped_contracts() if contract.ref.id == DEFAULT_CONTRACT)


def lower(first, second):
    return max(first, second, key=DTYPE_ORDER.index)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtypes", list(itertools.product(DTYPE_ORDER, repeat=2)), ids="-".join)
def test_equality_passes_and_one_ulp_above_fails(judge, record, dtypes, sign):
    limit = SHIPPED.max_abs_dlogp[lower(*dtypes)]
    for size, status in ((limit, Status.PASS), (math.nextafter(limit, math.inf), Status.FAIL)):
        values = ([-size], [0.0]) if sign > 0 else ([0.0], [-size])
        rows = [[record("a", side, dtype=name, wide=True)] for side, name in zip(values, dtypes, strict=True)]
        result = judge(*rows, contract=SHIPPED)
        assert (result.status, result.dtype, result.threshold) == (status, lower(*dtypes), limit)
        assert result.metrics["max_abs_dlogp"] == size
        assert result.contract == SHIPPED.ref


@pytest.mark.parametrize("dtype", DTYPE_ORDER)
def test_float32_logprobs_meet_a_limit_to_the_bit(contract, judge, record, dtype):
    """The made-up figures are powers of two, and near -0.5 a float32 step is 2**-24."""
    limit = contract.max_abs_dlogp[dtype]
    for size, status in ((limit, Status.PASS), (limit + 2.0**-24, Status.FAIL)):
        result = judge([record("a", [-0.5], dtype=dtype)], [record("a", [-0.5 - size], dtype=dtype)])
        assert (result.status, result.metrics["max_abs_dlogp"]) == (status, size)


def test_ties_go_to_the_lowest_sequence_in_bytes_then_to_the_lowest_position(judge, record):
    """UTF-8 sorts as code points do: U+FFFD before U+1F600, where UTF-16 has it the other way round."""
    ids = ["\U0001f600", "\ufffd", "b", "é", "a\u0301", "Z", "aa", "10", "9"]
    rollout = [record(id, [-1.0, -2.0, -3.0, -4.0]) for id in ids]
    training = [record(id, [-1.0, -2.5, -2.5, -4.5], wide=True) for id in reversed(ids)]
    for left in range(len(ids)):
        result, worst = judge(rollout[left:], training[: len(ids) - left], tokens=2)
        order = sorted(ids[left:], key=str.encode)
        assert (result.worst.sequence, result.worst.position) == (order[0], 1)
        assert [(item.token.sequence, item.token.position) for item in worst] == [(order[0], 1), (order[0], 2)]


def test_the_worst_token_has_its_place_in_the_response_and_not_among_the_active(judge, record):
    mask = [False, True, False, False, True]
    rollout = record("a", [math.nan, -1.0, -2.0, math.inf, -3.0], mask=mask, ids=[5, 6, 2**40, 8, 2**41])
    training = record("a", [-9.0, -1.0, 7.0, -9.0, -3.25], mask=mask, ids=[5, 6, 2**40, 8, 2**41])
    result, (worst,) = judge([rollout], [training], tokens=1)
    assert (result.active_tokens, result.metrics["max_abs_dlogp"]) == (2, 0.25)
    assert (result.worst.position, result.worst.token) == (4, 2**41)
    assert [(item.position, item.token) for item in worst.around] == [(1, 6), (4, 2**41)]


def test_the_ratio_interval_can_be_replaced_and_bounds_lie_inside(judge, record):
    rollout = [record("a", [0.0] * 4, wide=True)]
    training = [record("a", [math.log(x) for x in (0.75, 1.0, 0.7, 0.74)], wide=True)]
    narrow = judge(rollout, training)
    assert math.exp(math.log(0.75)) == 0.75
    assert (narrow.clip_interval, narrow.metrics["clipfrac0"]) == ((0.75, 1.25), 0.5)
    wide = judge(rollout, training, clip_range=(0.5, 2.0))
    assert (wide.clip_interval, wide.metrics["clipfrac0"]) == ((0.5, 2.0), 0.0)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "int4", ""])
def test_a_dtype_without_a_row_has_no_threshold_and_keeps_its_numbers(judge, record, dtype):
    result = judge([record(dtype=dtype)], [record(dtype=dtype)])
    assert (result.status, result.dtype, result.threshold) == (Status.NO_THRESHOLD, dtype, None)
    assert result.metrics["max_abs_dlogp"] == 0.0
    assert (repr(dtype) if dtype else "unknown") in result.reason


def test_one_side_below_all_rows_is_no_threshold_for_both(judge, record):
    result = judge([record(dtype="float8_e4m3fn")], [record(dtype="bfloat16")])
    assert (result.status, result.dtype) == (Status.NO_THRESHOLD, "float8_e4m3fn")


def test_what_is_not_compared_states_the_terms_all_the_same(contract, judge, record):
    sides = [record()], [record(ids=[1, 2, 3])]
    plain, wide = judge(*sides), judge(*sides, clip_range=(0.5, 2.0))
    assert plain.status is wide.status is Status.INVALID_IDENTITY
    assert (plain.clip_interval, wide.clip_interval) == (contract.clip_interval, (0.5, 2.0))
    limit = contract.max_abs_dlogp["float32"]
    assert (plain.dtype, plain.threshold, plain.contract) == ("float32", limit, contract.ref)
    assert plain.limits == judge([record()], [record()]).limits

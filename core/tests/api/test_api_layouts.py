"""Every layout, dtype and kind of view of the same logprobs gives the metrics of the definitions."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcfg import compare_logprobs
from xcfg.model.result import METRIC_NAMES
from xcfg.model.status import Status

EXAMPLES = settings.default.max_examples


def views(rows):
    """The same (B, L) values behind other strides, byte orders, buffers and locks."""
    wide = np.zeros((rows.shape[0], rows.shape[1] * 2 + 3), rows.dtype)
    wide[:, 3::2] = rows
    locked = rows.copy()
    locked.flags.writeable = False
    mirrored = np.ascontiguousarray(rows[::-1, ::-1])
    return {
        "column slice": np.hstack([rows, rows])[:, rows.shape[1] :],
        "every second column": wide[:, 3::2],
        "transposed": np.ascontiguousarray(rows.T).T,
        "reversed": mirrored[::-1, ::-1],
        "fortran": np.asfortranarray(rows),
        "read-only": locked,
        "other byte order": rows.astype(rows.dtype.newbyteorder(">")),
        "memoryview": memoryview(np.ascontiguousarray(rows)),
    }


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_with_holes(contract, oracle, same, ragged, padded, dtype, side):
    rollout, training, masks = ragged(dtype=dtype)
    left, right = padded(rollout, np.nan, side), padded(training, 3.0, side)  # what padding holds does not matter
    mask = padded(masks, False, side)
    found = compare_logprobs(left, right, mask=mask, dtype="bf16", contract=contract)
    same(found.metrics, oracle(list(left), list(right), list(mask)))
    assert found.active_tokens == int(mask.sum())
    assert list(found.metrics) == [name for name in METRIC_NAMES if name in found.metrics]


def test_ragged_lists_and_padding_agree_in_every_bit(contract, oracle, same, ragged, padded):
    rollout, training, masks = ragged()
    options = {"dtype": "float32", "contract": contract}
    lengths = [len(row) for row in rollout]
    flat, other, on = (np.concatenate(rows) for rows in (rollout, training, masks))
    found = [
        compare_logprobs(flat, other, lengths=lengths, mask=on, **options),
        compare_logprobs(flat[None], other[None], lengths=np.array(lengths, np.uint8), mask=on[None], **options),
        compare_logprobs(rollout, tuple(training), mask=masks, **options),
        compare_logprobs(padded(rollout, 0), padded(training, 0), mask=padded(masks, False), **options),
        compare_logprobs([row.tolist() for row in rollout], training, mask=[row.tolist() for row in masks], **options),
    ]
    same(found[0].metrics, oracle(rollout, training, masks))
    assert all(item == found[0] for item in found)


@pytest.mark.parametrize("name", list(views(np.zeros((2, 3), np.float32))))
def test_views_of_any_kind(contract, oracle, same, ragged, padded, name):
    rollout, training, masks = ragged()
    left, right, mask = padded(rollout, -1), padded(training, -1), padded(masks, False)
    found = compare_logprobs(
        views(left)[name], views(right)[name], mask=views(mask.astype(np.int8))[name], dtype="bf16", contract=contract
    )
    same(found.metrics, oracle(list(left), list(right), list(mask)))


def test_anything_that_numpy_views(contract, oracle, same, ragged):
    pa = pytest.importorskip("pyarrow")
    rollout, training, _ = ragged(dtype=np.float64)
    flat, other = np.concatenate(rollout), np.concatenate(training)
    lengths = [len(row) for row in rollout]
    expected = oracle(rollout, training, None)
    kinds = (array("d", flat), pa.array(flat), flat.tolist())
    for values in kinds:
        found = compare_logprobs(values, other, lengths=array("i", lengths), dtype="float32", contract=contract)
        same(found.metrics, expected)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float16, np.float64])
def test_masks_of_any_dtype(contract, oracle, same, ragged, padded, kind):
    rollout, training, masks = ragged(seed=3)
    mask = padded(masks, False)
    left, right = padded(rollout, -1), padded(training, -1)
    found = compare_logprobs(left, right, mask=mask.astype(kind), dtype="float32", contract=contract)
    same(found.metrics, oracle(list(left), list(right), list(mask)))


def test_one_flat_array_is_one_sequence(contract, oracle, same, ragged):
    rollout, training, _ = ragged(rows=9)
    found = compare_logprobs(np.concatenate(rollout), np.concatenate(training), dtype="bf16", contract=contract)
    same(found.metrics, oracle([np.concatenate(rollout)], [np.concatenate(training)], None))


def test_sides_of_different_widths_are_subtracted_in_float64(contract):
    rollout, training = np.array([-1.0, -2.0, -0.1], np.float32), np.array([-1.0, -2.0 - 1e-12, -0.1], np.float64)
    found = compare_logprobs(rollout, training, dtype="float32", contract=contract)
    assert found.metrics["max_abs_dlogp"] == abs(-0.1 - float(np.float32(-0.1)))
    assert found.metrics["frac_unequal"] == 2 / 3


def test_long_rows_and_many_rows_meet_at_block_ends(contract, oracle, same):
    """Rows of 1 token, of more tokens than a block, and empty ones, in one batch: blocks end at 2**15 tokens."""
    rng = np.random.default_rng(11)
    lengths = [1, 40_000, 0, 32_767, 1, 1, 0, 70_000, 2]
    rollout = [-rng.exponential(1, n).astype(np.float32) - np.float32(0.1) for n in lengths]
    training = [row + rng.normal(0, 0.01, len(row)).astype(np.float32) for row in rollout]
    masks = [rng.random(n) < 0.5 for n in lengths]
    masks[3][:] = False
    found = compare_logprobs(rollout, training, mask=masks, dtype="bf16", contract=contract)
    same(found.metrics, oracle(rollout, training, masks))


tokens = st.tuples(st.floats(-30, -0.5, width=32), st.floats(-0.25, 0.25, width=32), st.booleans())


@settings(max_examples=4 * EXAMPLES // 5, deadline=None)
@given(st.lists(st.lists(tokens, max_size=6), min_size=1, max_size=6), st.booleans())
def test_any_batch(contract, oracle, batch, by_name):
    rollout = [np.array([r for r, _, _ in row], np.float32) for row in batch]
    training = [np.array([np.float32(r) + np.float32(d) for r, d, _ in row], np.float32) for row in batch]
    masks = [np.array([on for _, _, on in row], bool) for row in batch]
    names = [f"s{len(batch) - place}" for place in range(len(batch))] if by_name else None
    found = compare_logprobs(rollout, training, mask=masks, sequence_ids=names, dtype="bf16", contract=contract)
    active = sum(int(row.sum()) for row in masks)
    assert found.active_tokens == active
    if not active:
        assert (found.status, dict(found.metrics)) == (Status.ZERO_ACTIVE_TOKENS, {})
        return
    with np.errstate(all="ignore"):
        expected = oracle(rollout, training, masks)
    for name in METRIC_NAMES[:-3]:  # correlations of next to constant values are noise in any formula
        assert found.metrics[name] == pytest.approx(expected[name], rel=1e-9, abs=1e-12), name
    assert (found.status is Status.PASS) == (expected["max_abs_dlogp"] <= 2.0**-3)

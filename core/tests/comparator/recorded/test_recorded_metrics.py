"""Recorded sides of any shape against an oracle in plain Python floats: metrics, worst token, per-rank metrics."""

from __future__ import annotations

import itertools
import math
import struct

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from xcfg.model.result import METRIC_NAMES
from xcfg.model.status import Status

from ..oracle import oracle

EXAMPLES = settings.default.max_examples


def sizeable(value):
    """Zero for what is so small that its square, in the oracle's correlation, is not exact."""
    return value if abs(value) > 1e-30 else 0.0


logp = st.floats(min_value=-40.0, max_value=2.0**-10).map(sizeable)
shift = st.floats(min_value=-2.0, max_value=2.0).map(sizeable)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


def stored(value, wide):
    """What a column of the given width keeps of a float."""
    return value if wide else struct.unpack("f", struct.pack("f", value))[0]


@st.composite
def sides(draw):
    """Records of both sides as plain values: (id, rank, wide, logprobs) by side, and the mask of each id."""
    ids = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    masks, made = {}, ([], [])
    for id in ids:
        base = draw(st.lists(logp, min_size=1, max_size=6))
        masks[id] = draw(st.lists(st.booleans(), min_size=len(base), max_size=len(base)))
        for side in made:
            for rank in draw(st.sampled_from([(0,), (1,), (0, 1)])):
                wide = draw(st.booleans())
                values = [stored(min(value + draw(shift), 2.0**-10), wide) for value in base]
                side.append((id, rank, wide, values))
    ranked = [{rank for _, rank, _, _ in side} == {0, 1} for side in made]  # ranks have no gap, or are not told
    for side, keep in zip(made, ranked, strict=True):
        if not keep:
            side[:] = {id: (id, None, wide, values) for id, _, wide, values in side}.values()
    return made, masks


def built(record, side, masks):
    return [
        record(id, values, mask=masks[id], rank=rank, wide=wide, place=f"line {line}")
        for line, (id, rank, wide, values) in enumerate(side)
    ]


def largest(left, right, mask):
    return max((abs(t - r) for r, t, on in zip(left, right, mask, strict=True) if on), default=-1.0)


def expected(made, masks, *, ranks=None):
    """Rows (id, rollout rank, training rank, rollout, training): the worst replicas of each id, or a pair of ranks."""
    rows = []
    for id in sorted(masks, key=str.encode):
        pairs = [
            (id, left[1] or 0, right[1] or 0, left[3], right[3])
            for left, right in itertools.product(
                *([item for item in sorted(side, key=lambda item: item[1] or 0) if item[0] == id] for side in made)
            )
        ]
        if ranks is None:
            rows.append(max(pairs, key=lambda row: largest(row[3], row[4], masks[id])))  # the first of equals
        else:
            rows += [row for row in pairs if row[1:3] == ranks]
    return [row for row in rows if any(masks[row[0]])]


def numbers(rows, masks, interval):
    return oracle([row[3] for row in rows], [row[4] for row in rows], [masks[row[0]] for row in rows], *interval)


def agree(found, wanted):
    for name, value in wanted.items():
        if name in found or not name.startswith("corr_"):  # of values that hardly vary a correlation may be absent
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
    assert [name for name in METRIC_NAMES if name in found] == list(found)


@settings(max_examples=6 * EXAMPLES // 5, deadline=None)
@given(sides())
def test_metrics_worst_token_and_ranks_equal_the_oracle(contract, judge, record, drawn):
    made, masks = drawn
    result = judge(*(built(record, side, masks) for side in made))
    rows = expected(made, masks)
    if not rows:
        assert result.status is Status.ZERO_ACTIVE_TOKENS
        assert (result.active_tokens, result.metrics, result.worst, result.per_rank) == (0, {}, None, ())
        return
    assert result.active_tokens == sum(sum(masks[row[0]]) for row in rows)
    agree(result.metrics, numbers(rows, masks, contract.clip_interval))
    tokens = [
        (-abs(row[4][at] - row[3][at]), row[0].encode(), at, row) for row in rows for at in range(len(row[3]))
        if masks[row[0]][at]
    ]  # fmt: skip
    size, id, position, row = min(tokens, key=lambda item: item[:3])
    worst = result.worst
    assert (worst.sequence, worst.position, worst.token) == (id.decode(), position, 10 + position)
    assert (worst.rollout_logp, worst.train_logp) == (row[3][position], row[4][position])
    assert (worst.rollout_rank, worst.train_rank) == row[1:3]
    assert result.status is (Status.PASS if -size <= contract.max_abs_dlogp["float32"] else Status.FAIL)
    pairs = {(item.rollout_rank, item.train_rank): item for item in result.per_rank}
    assert list(pairs) == sorted(pairs)
    assert sum(item.active_tokens for item in result.per_rank) >= result.active_tokens
    for ranks, item in pairs.items():
        mine = expected(made, masks, ranks=ranks)
        assert item.active_tokens == sum(sum(masks[row[0]]) for row in mine)
        agree(item.metrics, numbers(mine, masks, contract.clip_interval))


@settings(max_examples=3 * EXAMPLES // 5, deadline=None)
@given(sides(), st.randoms(use_true_random=False))
def test_the_order_of_records_changes_nothing(judge, record, drawn, random):
    made, masks = drawn
    ordered = [built(record, side, masks) for side in made]
    shuffled = [random.sample(side, len(side)) for side in ordered]
    assert judge(*ordered) == judge(*shuffled)


@settings(max_examples=3 * EXAMPLES // 5, deadline=None)
@given(sides(), st.randoms(use_true_random=False), st.data())
def test_the_order_of_records_changes_no_complaint(judge, record, drawn, random, data):
    made, masks = drawn
    spoilt = [built(record, side, masks) for side in made]
    for side in spoilt:
        at = data.draw(st.integers(0, len(side) - 1))
        other = {
            "tokens": {"response_ids": side[at].response_ids + 1},
            "value": {"logprobs": side[at].logprobs * math.nan, "mask": None},
            "positive": {"logprobs": abs(side[at].logprobs) + 1, "mask": None},
            "temperature": {"semantics": {"temperature": 0.5}},
            "version": {"weight_versions": ("7",)},
            "length": {"logprobs": side[at].logprobs[:-1]},
            "id": {"id": "another"},
        }
        side[at] = evolve(side[at], **other[data.draw(st.sampled_from(sorted(other)))])
    shuffled = [random.sample(side, len(side)) for side in spoilt]
    assert judge(*spoilt) == judge(*shuffled)


@pytest.mark.parametrize(
    ("d", "p95", "p99"),
    [([0.25], 0.25, 0.25), ([0.0, 1.0], 0.95, 0.99), ([3.0, 0.0, 1.0], 2.8, 2.96)],
)
@pytest.mark.parametrize("wide", [False, True])
def test_percentiles_of_one_two_and_three_tokens(judge, record, d, p95, p99, wide):
    training = record("a", [-8.0 + value for value in d], wide=wide)
    result = judge([record("a", [-8.0] * len(d))], [training])
    assert result.metrics["p95_abs_dlogp"] == pytest.approx(p95, rel=1e-12)
    assert result.metrics["p99_abs_dlogp"] == pytest.approx(p99, rel=1e-12)

"""One comparison held by several processes: whatever way its rows are dealt out, every process has the same result."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from attrs import evolve

from xcfg.comparator import blocks, quantile
from xcfg.comparator.arrays import ArrayPairs
from xcfg.comparator.drift import drift
from xcfg.comparator.exchange import ALONE, gather_texts
from xcfg.comparator.judging import judged
from xcfg.comparator.quantile import Histogram, Selection
from xcfg.comparator.together import agreed, announcing, everyones
from xcfg.comparator.tolerance import row
from xcfg.comparator.worst import worst_of_all, worst_token
from xcfg.errors import InvalidInput
from xcfg.model.result import Comparison, Finding, WorstToken
from xcfg.model.status import Status


class Seat:
    """The exchange of one of several threads that make the same calls."""

    def __init__(self, rank, table, barrier):
        self.rank, self.table, self.barrier = rank, table, barrier

    def gather(self, values):
        self.table[self.rank] = values.copy()
        self.barrier.wait()
        found = [self.table[rank] for rank in sorted(self.table)]
        self.barrier.wait()
        return found


def together(parts, work):
    """What ``work(part, exchange)`` gives in each of as many threads as there are parts."""
    table, results, faults = {}, {}, []
    barrier = threading.Barrier(len(parts), timeout=20)

    def one(rank, part):
        try:
            results[rank] = work(part, Seat(rank, table, barrier))
        except Exception as fault:
            faults.append(fault)
            barrier.abort()

    threads = [threading.Thread(target=one, args=item) for item in enumerate(parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for fault in faults:
        if not isinstance(fault, threading.BrokenBarrierError):
            raise fault
    assert not faults
    return [results[rank] for rank in range(len(parts))]


def rows_of(seed=0, count=9, scale=0.1):
    """Rows of 1 to 12 tokens: rollout and training logprobs."""
    generator = np.random.default_rng(seed)
    rollout = [-generator.exponential(2.5, size) for size in generator.integers(1, 13, count)]
    return [(row, row + scale * generator.normal(size=len(row))) for row in rollout]


def pairs(rows, rank=0):
    blank = [np.zeros(0)]
    return ArrayPairs(
        rollout=np.concatenate([left for left, _ in rows] or blank),
        train=np.concatenate([right for _, right in rows] or blank),
        lengths=np.array([len(left) for left, _ in rows], dtype=np.int64),
        mask=None,
        tokens=None,
        names=None,
        rank=rank,
    )


def dealt(rows):
    """Ways to deal the rows to processes; one has nothing at all."""
    return [[rows[:4], rows[4:]], [rows[::2], [], rows[1::2]], [[], rows], [[row] for row in rows]]


@pytest.mark.parametrize("way", range(4))
def test_metrics_do_not_depend_on_who_holds_which_rows(way):
    rows = rows_of()
    whole = drift(pairs(rows), (0.9, 1.1))
    for found in together(dealt(rows)[way], lambda part, exchange: drift(pairs(part), (0.9, 1.1), exchange)):
        assert found.tokens == whole.tokens == sum(len(left) for left, _ in rows)
        assert list(found.metrics) == list(whole.metrics)
        for name, value in whole.metrics.items():
            assert found.metrics[name] == pytest.approx(value, rel=1e-12, abs=1e-15), name
        for name in ("max_abs_dlogp", "p95_abs_dlogp", "p99_abs_dlogp", "clipfrac0", "frac_gt_ln2"):
            assert found.metrics[name] == whole.metrics[name]


def test_the_worst_place_is_a_process_own():
    rows = rows_of()
    first, second = together([rows[:4], []], lambda part, exchange: drift(pairs(part), (0.9, 1.1), exchange))
    sizes = [np.abs(right - left) for left, right in rows[:4]]
    number = max(range(4), key=lambda index: sizes[index].max())
    assert (first.worst.row, first.worst.position) == (number, int(sizes[number].argmax()))
    assert second.worst is None


@pytest.mark.parametrize("text", ["", "s0", "é", "\U0001f600", "\udc80 half a name"])
def test_texts_are_gathered_in_rank_order(text):
    assert gather_texts(text, ALONE) == [text]
    found = together([text, "", "z"], gather_texts)
    assert found == [[text, "", "z"]] * 3


def test_the_faults_of_several_processes_are_told_in_one_sentence():
    def work(fault, exchange):
        with pytest.raises(InvalidInput if fault is None else ValueError) as raised:
            with announcing(exchange):
                if fault:
                    raise ValueError(fault)
            agreed({"dtype": "float32"}, {}, exchange)
        return str(raised.value)

    said = together(["no such file", None, "not a number"], work)
    assert said == ["no such file", "group: rank 0: no such file; rank 2: not a number", "not a number"]


def finding(rule, **evidence):
    return Finding(
        source_class="logical", subclass="observation", rule=rule, evidence=evidence, advice="", confidence="low"
    )


@pytest.mark.parametrize("others", [1, 2])
def test_what_all_processes_found_is_said_once_where_the_first_said_it(others):
    """b is found by all, the others by the first and by the last alone."""
    shared, first, last = finding("b", tokens=3), finding("c", tokens=5), finding("a")
    parts = [[shared, first], *[[shared]] * (others - 1), [last, shared]]
    expected = (shared, finding("c", rank=0, tokens=5), finding("a", rank=others))
    assert together(parts, everyones) == [expected] * (others + 1)
    assert everyones([shared, first], ALONE) == (shared, first)


WORST = WorstToken(
    sequence="name", position=7, token=11, rollout_logp=-2.0, train_logp=-2.75, rollout_rank=3, train_rank=5
)


def test_the_worst_of_all_is_the_same_for_all_whether_or_not_it_is_the_own():
    lesser = evolve(WORST, sequence="other", position=90, rollout_logp=-9.0, train_logp=-9.5)
    reversed_ = evolve(WORST, sequence="namf", rollout_logp=-2.75, train_logp=-2.0, position=1)
    for parts in ([lesser, WORST, None], [None, WORST, reversed_], [WORST, None, reversed_, lesser]):
        assert together(parts, worst_of_all) == [WORST] * len(parts)
    later = evolve(WORST, position=9, token=3, train_rank=2)
    assert together([later, WORST], worst_of_all) == together([WORST, later], worst_of_all) == [WORST] * 2
    assert worst_of_all(WORST, ALONE) == WORST
    nothing = evolve(WORST, rollout_logp=-1.0, train_logp=-1.0)
    assert together([None, nothing], worst_of_all) == [nothing] * 2


def test_the_verdict_of_a_part_names_the_worst_token_of_all(contract):
    rows = rows_of(scale=1e-3)
    rows[6][1][0] = rows[6][0][0] - 2.5
    judging = row("float32", contract)
    base = Comparison(status=Status.INVALID_ARTIFACT, contract=contract.ref)

    def judge(part, exchange):
        held, rank = part
        return judged(base, pairs(held, rank), judging, (0.5, 2.0), exchange=exchange)

    first, second = together([(rows[:4], 0), (rows[4:], 1)], judge)
    for found in (first, second):
        assert (found.status, found.worst.sequence, found.worst.position) == (Status.FAIL, "2", 0)
        assert (found.worst.rollout_rank, found.worst.train_rank) == (1, 1)
        assert found.metrics["max_abs_dlogp"] == pytest.approx(2.5, rel=1e-12)
    assert "in sequence '2' at position 0" in first.reason


def test_a_token_of_a_row_is_named_in_full():
    held = pairs(rows_of(), rank=2)
    row = held.row(3)
    found = worst_token(row, 1)
    assert (found.sequence, found.position, found.token) == ("3", 1, -1)
    assert (found.rollout_logp, found.train_logp) == (float(row.rollout[1]), float(row.train[1]))
    assert (found.rollout_rank, found.train_rank) == (2, 2)


@pytest.mark.parametrize("limit", [1, 8, 1 << 21])
@pytest.mark.parametrize("size", [3, 1 << 15])
def test_order_statistics_of_all_parts_are_exact(monkeypatch, limit, size):
    monkeypatch.setattr(quantile, "LIMIT", limit)
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", size)
    generator = np.random.default_rng(3)
    near = 0.5 + 2.0**-40 * np.arange(20)  # one bin of 16 bits, and of 32
    values = generator.permutation(np.concatenate([near, np.full(7, 0.25), generator.exponential(1.0, 30), [0.0, 9e9]]))
    ranks = [0, 3, 9, 20, 31, 57, 58]

    def select(part, exchange):
        histogram = Histogram()
        for piece in part:
            histogram.add(piece)
        chosen = Selection(histogram, ranks, lambda: iter(part), exchange)
        for piece in part:
            chosen.add(piece)
        return chosen.result()

    ordered = np.sort(values)
    expected = {rank: float(ordered[rank]) for rank in ranks}
    for parts in ([values[:10], values[10:11], values[11:]], [values]):
        pieces = [np.array_split(part, math.ceil(len(part) / 8)) for part in parts]
        assert together([*pieces, []], select) == [expected] * (len(parts) + 1)


def test_a_process_without_a_token_has_the_verdict_of_the_others(contract):
    rows, judging = rows_of(), row("float32", contract)
    base = Comparison(status=Status.INVALID_ARTIFACT, contract=contract.ref)
    first, second = together(
        [rows, []], lambda part, exchange: judged(base, pairs(part), judging, (0.5, 2.0), exchange=exchange)
    )
    assert (first.worst, first.metrics, first.status) == (second.worst, second.metrics, second.status)

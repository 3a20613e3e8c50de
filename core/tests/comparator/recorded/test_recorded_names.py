"""Sequence ids of any kind, and what is told while records are read."""

from __future__ import annotations

from xcfg.comparator.recorded.compare import Terms, compare_recorded

IDS = ["", "\x00", "a\x00b", "a", "a\nb", "\x1b[2J", "é", "e\u0301", "\ud800", "\U0001f600", "x" * 10_000, "x" * 9_999]


def test_ids_of_any_kind_are_kept_apart_and_named_as_they_are(judge, record):
    """Half a character (a lone surrogate) has no UTF-8: an importer may refuse it, the comparison need not."""
    for worst in IDS:
        rollout = [record(id, [-1.0]) for id in IDS]
        training = [record(id, [-1.0 - 0.25 * (id == worst)]) for id in reversed(IDS)]
        result, (token,) = judge(rollout, training, tokens=1)
        assert result.active_tokens == len(IDS)
        assert result.worst.sequence == token.token.sequence == worst


def test_progress_is_told_by_side(contract, record, tmp_path):
    told = []
    sides = [[record(id) for id in "ab"], [record(id) for id in "ba"]]
    compare_recorded(*sides, Terms(contract=contract), tmp_path, lambda side, records: told.append((side, records)))
    assert told == [(0, 1), (0, 2), (1, 1), (1, 2)]

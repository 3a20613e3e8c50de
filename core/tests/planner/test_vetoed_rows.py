"""Covering arrays around vetoes that are only found out by asking."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from xcfg.planner.pairwise import covering_rows
from xcfg.planner.space import Row, Space
from xcfg.planner.vetoes import rows_that_run


def pairs(row: Row) -> set[tuple[tuple[int, int], ...]]:
    return set(itertools.combinations(enumerate(row), 2))


def check(sizes: list[int], vetoed: Callable[[Row], bool]) -> list[Row]:
    """Every pair that some row without a veto holds is in such a row; each pair besides is in a row that is vetoed."""
    rows = rows_that_run(sizes, [], [], vetoed)
    every = list(itertools.product(*map(range, sizes)))
    wanted = set().union(*(pairs(row) for row in every if not vetoed(row)))
    running = [row for row in rows if not vetoed(row)]
    assert set().union(*map(pairs, running)) == wanted
    assert set().union(*map(pairs, rows)) >= set().union(*map(pairs, every))
    assert rows == [*running, *(row for row in rows if vetoed(row))]
    return running


def test_without_a_veto_nothing_changes() -> None:
    assert rows_that_run([3, 2, 2, 2], [], [], lambda row: False) == covering_rows(Space.of([3, 2, 2, 2]))


def test_a_vetoed_pair_costs_no_other_pair_and_few_rows() -> None:
    running = check([2] * 10, lambda row: row[2] == 1 and row[7] == 0)
    assert len(running) <= 8


def test_two_vetoes_in_one_row() -> None:
    def vetoed(row: Row) -> bool:
        return (row[0] == 0 and row[1] == 0) or (row[2] == 1 and row[3] == 2)

    assert len(check([2, 2, 3, 3], vetoed)) <= 14


def test_a_veto_that_needs_three_loses_no_pair() -> None:
    assert check([3, 3, 3], lambda row: row == (0, 0, 0))


def test_a_value_that_is_always_vetoed_is_left_with_a_row_that_says_so() -> None:
    rows = rows_that_run([2, 2, 2], [], [], lambda row: row[0] == 1)
    assert all(row[0] == 0 for row in rows[:4])
    assert rows[4:] and all(row[0] == 1 for row in rows[4:])


def test_everything_vetoed() -> None:
    assert check([2, 2, 2], lambda row: True) == []
    assert rows_that_run([2], [], [], lambda row: True) == [(0,), (1,)]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 3), min_size=2, max_size=5).flatmap(lambda sizes: st.tuples(
    st.just(sizes), st.sets(st.tuples(*(st.integers(0, size - 1) for size in sizes)), max_size=40)
)))  # fmt: skip
def test_any_set_of_vetoed_rows(problem: tuple[list[int], set[Row]]) -> None:
    sizes, bad = problem
    check(sizes, bad.__contains__)

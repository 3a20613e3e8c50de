"""Covering arrays against a checker that knows nothing of how they are made."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcfg.planner.pairwise import covering_array

Pair = frozenset[tuple[Any, Any]]
"""Two (factor, value)."""

MODELS = {
    "3^4": [3] * 4,
    "3^13": [3] * 13,
    "4^15 3^17 2^29": [4] * 15 + [3] * 17 + [2] * 29,
    "4^1 3^39 2^35": [4] + [3] * 39 + [2] * 35,
    "2^100": [2] * 100,
    "10^20": [10] * 20,
}
ALLPAIRSPY = {"3^4": 9, "3^13": 17, "4^15 3^17 2^29": 37, "4^1 3^39 2^35": 27, "2^100": 15, "10^20": 219}
"""Rows of allpairspy 2.5.1."""
COVERTABLE = {"3^4": 10, "3^13": 19, "4^15 3^17 2^29": 35, "4^1 3^39 2^35": 27, "2^100": 15, "10^20": 197}
"""Rows of covertable 3.2.0, the better of two salts."""


def pairs_of(row: Mapping[Any, Any]) -> set[Pair]:
    return {frozenset(pair) for pair in itertools.combinations(row.items(), 2)}


def allowed(row: Mapping[Any, Any], forbidden: Sequence[Mapping[Any, Any]]) -> bool:
    return not any(all(row[factor] in values for factor, values in item.items()) for item in forbidden)


def check(
    domains: Mapping[Any, Sequence[Any]],
    rows: Sequence[Mapping[Any, Any]],
    forbidden: Sequence[Mapping[Any, Any]] = (),
    given_rows: Sequence[Mapping[Any, Any]] = (),
) -> None:
    """Every pair that an allowed row can hold is in a row; the allowed rows are found by trying all there are."""
    every = [dict(zip(domains, values, strict=True)) for values in itertools.product(*domains.values())]
    wanted = set().union(*(pairs_of(row) for row in every if allowed(row, forbidden)))
    covered = set().union(*(pairs_of(row) for row in (*rows, *given_rows)))
    assert wanted <= covered
    for row in rows:
        assert row.keys() == domains.keys()
        assert allowed(row, forbidden)
        assert all(value in domains[factor] for factor, value in row.items())


@pytest.mark.parametrize("name", MODELS)
def test_no_larger_than_the_better_of_two_libraries(name: str) -> None:
    sizes = MODELS[name]
    rows = covering_array([range(size) for size in sizes])
    covered = {pair for row in rows for pair in itertools.combinations(enumerate(row), 2)}
    places = itertools.combinations(range(len(sizes)), 2)
    assert len(covered) == sum(sizes[left] * sizes[right] for left, right in places)
    assert len(rows) <= min(ALLPAIRSPY[name], COVERTABLE[name])


def test_the_smallest_possible_where_that_is_known() -> None:
    for sizes, expected in (([2, 2], 4), ([3] * 4, 9), ([5, 4, 1], 20), ([2] * 10, 6), ([3, 2, 2], 6)):
        assert len(covering_array([range(size) for size in sizes])) == expected


def test_rows_are_named_where_the_factors_are() -> None:
    domains = {"dtype": ["bf16", "fp32"], "batch": [8, 1, 4], "eager": [True, False]}
    rows = covering_array(domains)
    check(domains, rows)
    assert len(rows) == 6
    assert [list(row) for row in rows] == [list(domains)] * 6


def test_neither_the_order_of_a_mapping_nor_a_second_call_changes_the_rows() -> None:
    domains = {f"k{index}": list(range(2 + index % 3)) for index in range(7)}
    rows = covering_array(domains)
    for seed in range(3):
        names = list(domains)
        random.Random(seed).shuffle(names)
        assert covering_array({name: domains[name] for name in names}) == rows


def test_rows_that_exist_already_are_not_made_again() -> None:
    assert len(covering_array([range(3)] * 4, given=[dict.fromkeys(range(4), 1)])) == 8
    assert covering_array([range(2)] * 2, given=[{0: 0, 1: 0}, {0: 1, 1: 1}]) == [(0, 1), (1, 0)]
    assert covering_array({"a": [1, 2]}, given=[{"a": 1}]) == [{"a": 2}]


def test_few_factors() -> None:
    assert covering_array([]) == []
    assert covering_array({}) == []
    assert covering_array([["x", "y"]]) == [("x",), ("y",)]
    assert covering_array([["x", "y"]], forbidden=[{0: ["x"]}]) == [("y",)]
    assert covering_array([["x"], ["y"]]) == [("x", "y")]
    with pytest.raises(ValueError, match="without values"):
        covering_array([["x"], []])


def test_combinations_that_leave_nothing() -> None:
    assert covering_array([range(2), range(2)], forbidden=[{}]) == []
    assert covering_array([range(2), range(3)], forbidden=[{0: [0]}, {0: [1], 1: [0, 1, 2]}]) == []


def test_a_pair_that_two_rules_forbid_together_is_not_sought() -> None:
    domains = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    forbidden = [{"a": [0], "c": [0]}, {"b": [0], "c": [1]}]
    rows = covering_array(domains, forbidden=forbidden)
    assert not any(row["a"] == 0 and row["b"] == 0 for row in rows)
    check(domains, rows, forbidden)


@st.composite
def problems(draw: st.DrawFn) -> tuple[dict[str, list[int]], list[dict[str, list[int]]], list[dict[str, int]]]:
    domains = {f"f{index}": list(range(draw(st.integers(1, 4)))) for index in range(draw(st.integers(2, 5)))}
    names = st.lists(st.sampled_from(sorted(domains)), min_size=1, max_size=3, unique=True)
    forbidden = [
        {name: draw(st.lists(st.sampled_from(domains[name]), min_size=1, unique=True)) for name in draw(names)}
        for _ in range(draw(st.integers(0, 4)))
    ]
    existing = [
        {name: draw(st.sampled_from(domains[name])) for name in draw(names)} for _ in range(draw(st.integers(0, 2)))
    ]
    return domains, forbidden, existing


@settings(deadline=None, max_examples=80)
@given(problems())
def test_any_factors_rules_and_existing_rows(
    problem: tuple[dict[str, list[int]], list[dict[str, list[int]]], list[dict[str, int]]],
) -> None:
    domains, forbidden, existing = problem
    check(domains, covering_array(domains, forbidden=forbidden, given=existing), forbidden, existing)

"""Minimal passing sets among executed cases, and the cost front."""

from __future__ import annotations

import pytest

from xcfg.analyzer.minimal import LISTED, Executed, minimal_sets, pareto_front
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target


def descriptor(name, **kwargs):
    return Knob(
        name=name,
        summary="",
        source_class=SourceClass.ARITHMETIC,
        lifecycle=Lifecycle.ENGINE,
        targets=Target.BOTH,
        domain=Domain(kind=Kind.BOOL),
        **kwargs,
    )


KNOBS = {name: descriptor(name) for name in "abcdefgh"}


def case(names, within, name=None, **kwargs):
    return Executed(case=name or names, aligned=dict.fromkeys(names, True), within=within, **kwargs)


def test_a_pair_with_both_singles_executed_is_irreducible():
    (found,) = minimal_sets([case("", False), case("a", False), case("b", False), case("ab", True)], KNOBS)
    assert found.case.case == "ab" and found.irreducible
    assert set(found.failing) == {"a", "b"} and found.to_execute == ()


def test_what_is_missing_is_named():
    (found,) = minimal_sets([case("", False), case("a", False), case("c", None), case("abc", True)], KNOBS)
    assert not found.irreducible and found.missing == 2**3 - 2 - 1
    assert found.to_execute[0] == {"b": True}
    assert {frozenset(aligned) for aligned in found.to_execute} == set(map(frozenset, ["b", "c", "ab", "ac", "bc"]))


def test_a_long_list_is_cut():
    (found,) = minimal_sets([case("abcdefgh", True)], KNOBS)
    assert found.missing == 2**8 - 2 and len(found.to_execute) == LISTED


def test_supersets_of_a_passing_set_are_not_minimal():
    cases = [case("a", True), case("ab", True), case("bc", True), case("bcd", True), case("d", False)]
    assert [found.case.case for found in minimal_sets(cases, KNOBS)] == ["a", "bc"]


def test_the_empty_set_is_minimal_where_production_passes():
    (found,) = minimal_sets([case("", True, "production"), case("a", True)], KNOBS)
    assert found.case.case == "production" and found.irreducible


def test_parts_are_compared_at_the_same_values():
    cases = [
        Executed(case="other", aligned={"a": 1}, within=False),
        Executed(case="same", aligned={"b": 3}, within=False),
        Executed(case="pass", aligned={"a": 2, "b": 3}, within=True),
    ]
    (found,) = minimal_sets(cases, KNOBS)
    assert found.failing == ("same",) and found.to_execute == ({"a": 2},)


def test_a_passing_part_at_another_value_makes_it_not_minimal():
    cases = [
        Executed(case="part", aligned={"a": 1}, within=True),
        Executed(case="whole", aligned={"a": 2, "b": 3}, within=True),
    ]
    assert [found.case.case for found in minimal_sets(cases, KNOBS)] == ["part"]


def test_of_cases_that_align_the_same_one_failure_counts():
    assert minimal_sets([case("a", True, "first"), case("a", False, "second")], KNOBS) == ()
    assert minimal_sets([case("a", False, "first"), case("a", True, "second")], KNOBS) == ()


def test_smallest_first():
    knobs = {
        "a": descriptor("a", semantic_scope=1),
        "b": descriptor("b", intrusion=1),
        "c": descriptor("c", maintenance=1),
        "d": descriptor("d"),
        "e": descriptor("e", intrusion=3),
        "f": descriptor("f"),
    }
    cases = [
        case("a", True),
        case("df", True),
        case("b", True),
        case("c", True),
        case("e", True, slowdown=1.5),
    ]
    assert [found.case.case for found in minimal_sets(cases, knobs)] == ["e", "c", "b", "df", "a"]


def test_linked_values_may_be_assignments():
    linked = {"x": {"rollout.dtype": "float32", "training.dtype": ["float32"]}}
    (found,) = minimal_sets([Executed(case="one", aligned=linked, within=True)], {"x": descriptor("x")})
    assert found.irreducible


@pytest.mark.parametrize("order", [1, -1])
def test_the_front(order):
    cases = [
        case("a", True, slowdown=2.0, memory=100),
        case("bc", True, slowdown=1.5, memory=100),
        case("de", True, slowdown=1.5, memory=90),
        case("fgh", True, slowdown=1.5, memory=95),
        case("abc", True, slowdown=1.0, memory=300),
        case("ab", False, slowdown=0.1, memory=1),
        case("b", True, slowdown=None, memory=1),
        case("ce", True, "twin", slowdown=1.5, memory=90),
    ][::order]
    front = [found.case for found in pareto_front(cases)]
    assert front[0] == "a" and front[-1] == "abc" and set(front[1:-1]) == {"de", "twin"}

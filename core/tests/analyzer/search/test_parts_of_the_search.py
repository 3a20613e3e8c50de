"""The model behind the order of work, sets, ranks and statuses, each against a count or a list by hand."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest

from xcfg.analyzer.search.lattice import bits, lattice
from xcfg.analyzer.search.order import count_smaller, key, preferred
from xcfg.analyzer.search.outcome import Outcome, Verdict
from xcfg.analyzer.search.prior import RATIO, clean, surprise
from xcfg.analyzer.search.problem import Options, Problem, Word
from xcfg.analyzer.search.uncovered import uncovered
from xcfg.errors import InvalidInput
from xcfg.model.scorer import Role
from xcfg.model.status import Status


def causes(knobs):
    """Every set of causes with its prior weight."""
    for size in range(1, knobs + 1):
        sets = [frozenset(chosen) for chosen in combinations(range(knobs), size)]
        yield from ((chosen, RATIO**size / len(sets)) for chosen in sets)


@pytest.mark.parametrize("seed", range(40))
def test_the_probability_that_a_pool_is_clean(seed):
    """Knobs 0.. are found causes, then groups, then the rest; what is left of seven is known to be no cause."""
    rng = random.Random(seed)
    found, groups = rng.randint(0, 2), tuple(rng.randint(2, 3) for _ in range(rng.randint(0, 2)))
    rest = rng.randint(0 if groups else 1, 7)
    knobs = max(7, found + sum(groups) + rest)
    parts, at = [], 0
    for size in (found, *groups, rest):
        parts.append(frozenset(range(at, at + size)))
        at += size
    known = frozenset(range(at))
    possible = [
        (chosen, weight)
        for chosen, weight in causes(knobs)
        if parts[0] <= chosen <= known and all(chosen & group for group in parts[1:-1])
    ]
    pool = parts[1] if groups else parts[-1]
    for size in range(1, len(pool) + 1):
        asked = frozenset(sorted(pool)[:size])
        expected = sum(weight for chosen, weight in possible if not chosen & asked) / sum(w for _, w in possible)
        assert clean(knobs, found, groups, rest, size) == pytest.approx(expected, abs=1e-12)


def test_surprise_is_one_bit_for_an_even_question():
    assert surprise(0.5) == 1.0
    assert surprise(0.0) == surprise(1.0) == 0.0
    assert surprise(0.25) == pytest.approx(0.811278, abs=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_uncovered_sets(knob, seed):
    rng = random.Random(seed)
    knobs = [knob(f"k{at}", candidates=tuple("abc")[: rng.randint(1, 3)]) for at in range(rng.randint(1, 5))]
    made = lattice(Problem(knobs=knobs))
    points = [
        made.encode({name: value for name, value in zip([k.name for k in knobs], values, strict=True) if value})
        for values in product(*[(None, *k.candidates) for k in knobs])
    ]
    failing = rng.sample(points, rng.randint(0, min(6, len(points))))
    universe = sum(bit for bit in bits(made.every) if rng.random() < 0.8)
    most = rng.randint(0, len(knobs))
    found = list(uncovered(made, universe, most, failing))
    expected = {
        point
        for point in points
        if 0 < point.bit_count() <= most
        and point & ~universe == 0
        and not any(point & ~other == 0 for other in failing)
    }
    assert len(found) == len(set(found)) and set(found) == expected
    assert [point.bit_count() for point in found] == sorted(point.bit_count() for point in found)


def test_smallest_is_scope_then_number_then_cost_then_intrusion_then_maintenance(knob):
    ranked = [
        ("cheap", {"cost": 0.1}),
        ("kept", {"cost": 0.2}),
        ("maintained", {"cost": 0.2, "maintenance": 1}),
        ("intrusive", {"cost": 0.2, "intrusion": 1}),
        ("dear", {"cost": 0.3}),
        ("wide", {"semantic_scope": 1}),
    ]
    problem = Problem(knobs=[knob(name, **traits) for name, traits in ranked])
    made = lattice(problem)
    sets = [
        ["cheap"],
        ["kept"],
        ["maintained"],
        ["intrusive"],
        ["dear"],
        ["cheap", "kept"],
        ["cheap", "dear"],
        ["wide"],
    ]
    points = [made.encode(dict.fromkeys(names, "on")) for names in sets]
    keys = [key(made, point) for point in points]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    assert count_smaller(made, points[0]) == 0
    assert [count_smaller(made, point) for point in points[1:5]] == [1, 2, 3, 4]
    assert count_smaller(made, points[5]) == 5
    assert count_smaller(made, points[-1]) == 2**5 - 1


def test_of_equal_sets_the_better_liked_values_come_first(knob):
    made = lattice(Problem(knobs=[knob("a", candidates=(1, 2, 3)), knob("b", candidates=(1, 2, 3))]))
    wanted = [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 3, "b": 1}, {"a": 3, "b": 3}]
    ranks = [preferred(made, made.encode(aligned)) for aligned in wanted]
    assert ranks == sorted(ranks)


def test_costs_that_are_no_binary_fractions_add_up_exactly(knob):
    """0.1 + 0.2 and 0.3 are not the same float, and 0.3 is none of the sums that 0.1 + 0.2 rounds to."""
    made = lattice(Problem(knobs=[knob("a", cost=0.1), knob("b", cost=0.2), knob("c", cost=0.3), knob("d", cost=0.0)]))
    forth, back = (made.encode(dict.fromkeys(names, "on")) for names in ("abd", "dba"))
    assert key(made, forth) == key(made, back)


@pytest.mark.parametrize(
    ("status", "within", "verdict", "scored"),
    [
        (Status.PASS, None, Verdict.PASS, True),
        (Status.FAIL, None, Verdict.FAIL, True),
        (Status.PASS, False, Verdict.FAIL, True),
        (Status.FAIL, True, Verdict.PASS, True),
        (Status.NO_THRESHOLD, True, Verdict.PASS, True),
        (Status.NO_THRESHOLD, None, Verdict.UNKNOWN, True),
        (Status.INVALID_IDENTITY, None, Verdict.FAIL, True),
        (Status.NON_FINITE, None, Verdict.FAIL, True),
        (Status.ZERO_ACTIVE_TOKENS, None, Verdict.UNKNOWN, True),
        (Status.UNSUPPORTED, None, Verdict.UNSUPPORTED, False),
        (Status.INVALID_PROVENANCE, None, Verdict.UNSUPPORTED, False),
        (Status.INVALID_ARTIFACT, None, Verdict.UNKNOWN, False),
        (Status.LAUNCH_ERROR, None, Verdict.UNKNOWN, False),
        (Status.ENVIRONMENT_ERROR, None, Verdict.UNKNOWN, False),
        (Status.SCORER_ERROR, None, Verdict.UNKNOWN, False),
        (Status.TIMEOUT, None, Verdict.UNKNOWN, False),
    ],
)
def test_what_a_status_says(status, within, verdict, scored):
    """The production row decides where it was judged: aligning a dtype moves a case to another row."""
    outcome = Outcome(status=status, within=within)
    assert (outcome.verdict, outcome.scored) == (verdict, scored)


def test_a_problem_that_makes_no_sense_is_refused_with_every_fault(knob):
    broken = [
        knob("twice"),
        knob("twice"),
        knob("empty", candidates=()),
        knob("same", candidates=({"a": 1}, {"a": 1})),
        knob("below", semantic_scope=-1),
        knob("dear", cost=float("nan")),
    ]
    with pytest.raises(InvalidInput) as raised:
        Problem(knobs=[*broken, knob("nowhere").__class__(name="nowhere", candidates=(1,), sides=())])
    assert {fault.where for fault in raised.value.faults} == {
        "twice",
        "empty",
        "same",
        "below",
        "dear",
        "nowhere",
    }
    with pytest.raises(InvalidInput, match="no knob to align"):
        Problem(knobs=())


@pytest.mark.parametrize(
    "options", [{"prove": Word.SUFFICIENT}, {"budget": -1}, {"margin": 1.0}, {"margin": -0.1}, {"repeats": -1}], ids=str
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidInput) as raised:
        Options(**options)
    assert raised.value.faults[0].where == next(iter(options))


def test_every_side_has_its_own_configuration(knob):
    made = lattice(Problem(knobs=[knob("left", Role.ROLLOUT), knob("right", Role.TRAINING), knob("both", *Role)]))
    left, right, both = (made.encode({name: "on"}) for name in ("left", "right", "both"))
    assert made.joined(left | both, right | both) == left | right | both
    assert made.joined(left | both, right) is None
    assert made.joined(left, 0) == left

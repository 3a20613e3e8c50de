"""The choices that aligning leaves, the case of each, and which choice a case is."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from attrs import evolve

from xcfg.errors import InvalidInput
from xcfg.model.case import Rejection
from xcfg.planner.alignment_space import AlignmentSpace

ALIGNED = {
    "rollout.dtype": "float32",
    "training.compute_dtype": "float32",
    "rollout.tensor_parallel_size": 1,
    "batch.size": 1,
    "execution.prefix_cache": False,
}
PRODUCTION = {"rollout.tensor_parallel_size": 2, "execution.prefix_cache": True}


@pytest.fixture
def space(bench: Any) -> Any:
    for name, value in ALIGNED.items():
        bench.catalog.all_knobs[name] = evolve(bench.catalog.all_knobs[name], aligned={name: value})

    def make(**changes: Any) -> AlignmentSpace:
        experiment = bench.experiment(**{"baseline": PRODUCTION, "axes": {}, **changes})
        return AlignmentSpace.of(experiment, bench.root, bench.catalog)

    make.catalog = bench.catalog  # type: ignore[attr-defined]
    return make


def test_the_choices_are_what_differs_from_production(space: Any) -> None:
    choices = {item.knob.name: [dict(sets) for sets in item.candidates] for item in space().choices}
    assert choices == {name: [{name: value}] for name, value in ALIGNED.items()}


def test_every_choice_is_a_case_of_its_own_and_is_found_again(space: Any) -> None:
    made = space()
    ids = set()
    names = [item.knob.name for item in made.choices]
    for number in range(len(names) + 1):
        for chosen in itertools.combinations(names, number):
            wanted = {name: {name: ALIGNED[name]} for name in chosen}
            case = made.case(wanted)
            ids.add(case.id)
            assert case.changed == tuple(sorted(chosen))
            found = made.chosen(case)
            assert found is not None and {name: dict(sets) for name, sets in found.items()} == wanted
    assert len(ids) == 2**5 and made.production.id in ids


def test_further_values_of_an_axis_are_candidates_after_the_aligned_one(space: Any) -> None:
    made = space(axes={"rollout.dtype": ["bfloat16", "float16", "float32"], "batch.size": [8, 2]})
    candidates = {item.knob.name: [sets[item.knob.name] for sets in item.candidates] for item in made.choices}
    assert candidates["rollout.dtype"] == ["float32", "float16"] and candidates["batch.size"] == [1, 2]
    half = made.case({"rollout.dtype": {"rollout.dtype": "float16"}})
    assert {name: dict(sets) for name, sets in made.chosen(half).items()} == {
        "rollout.dtype": {"rollout.dtype": "float16"}
    }


def test_a_case_outside_the_space_is_no_choice(space: Any) -> None:
    made = space()
    other = space(axes={"batch.size": [8, 3]})
    assert made.chosen(other.judge.case({"batch.size": 3})) is None
    swapped = evolve(made.production, rollout=evolve(made.production.rollout, scorer="plain"), id="0" * 16)
    assert made.chosen(swapped) is None


def test_assignments_that_contradict_each_other_are_refused_by_name(space: Any) -> None:
    made = space()
    with pytest.raises(InvalidInput, match=r"sets batch\.size to 2"):
        made.case({"batch.size": {"batch.size": 1}, "rollout.dtype": {"batch.size": 2}})


def test_what_the_reference_leaves_out_is_told_and_not_searched(space: Any) -> None:
    """A veto on prefix cache off at batch size 1: the cheaper of the two to leave out keeps production's value."""

    def veto(case: Any, baseline: Any) -> Rejection | None:
        knobs = case.rollout.knobs
        both = knobs["execution.prefix_cache"] is False and knobs["batch.size"] == 1
        return Rejection(kind="veto", reason="never both") if both else None

    space.catalog.veto = veto
    made = space()
    names = {item.knob.name for item in made.choices}
    assert len({"execution.prefix_cache", "batch.size"} & names) == 1 and len(names) == 4
    assert "never both" in "".join(made.unaligned.values())
    reference = made.case({item.knob.name: item.candidates[0] for item in made.choices})
    assert reference.rejected is None


def test_a_plan_of_some_cases_keeps_production_as_its_reference(space: Any) -> None:
    made = space()
    case = made.case({"batch.size": {"batch.size": 1}})
    plan = made.plan([case])
    assert plan.case(plan.baseline).id == made.production.id and plan.cases == (case,)
    assert set(ALIGNED) <= set(plan.dimensions)
    assert made.plan([made.production]).reference is None

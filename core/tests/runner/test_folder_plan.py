"""A folder's plan holds what every run planned in it."""

import pytest
from attrs import evolve

from xcfg.errors import InvalidInput
from xcfg.model.case import Case, SideConfig
from xcfg.model.experiment import Checkpoint, Experiment, SideSpec, TokenSource
from xcfg.model.plan import Plan
from xcfg.model.scorer import Role
from xcfg.runner.plans import merged


def side(role: Role, **knobs: object) -> SideConfig:
    named = {name.replace("_", ".", 1): value for name, value in knobs.items()}
    return SideConfig(role=role, scorer="fake", checkpoint=Checkpoint(path="m"), knobs=named)


def case(name: str, axes: dict, **knobs: object) -> Case:
    return Case(id=name, axes=axes, rollout=side(Role.ROLLOUT, **knobs), training=side(Role.TRAINING))


def plan(dimensions: tuple[str, ...], *cases: Case) -> Plan:
    experiment = Experiment(
        name="e",
        checkpoint=Checkpoint(path="m"),
        rollout=SideSpec(scorer="fake"),
        training=SideSpec(scorer="fake"),
        tokens=TokenSource(recorded="t"),
    )
    return Plan(experiment=experiment, root="/", baseline=cases[0].id, dimensions=dimensions, tokens={}, cases=cases)


BASE = {"rollout_dtype": "bfloat16", "batch_size": 8}


def test_the_first_plan_is_kept_as_it_is() -> None:
    only = plan(("rollout.dtype",), case("a", {"rollout.dtype": "bfloat16"}, **BASE))
    assert merged(None, only) == only


def test_a_slice_keeps_the_cases_of_the_whole() -> None:
    whole = plan(
        ("rollout.dtype",),
        case("a", {"rollout.dtype": "bfloat16"}, **BASE),
        case("b", {"rollout.dtype": "float32"}, **{**BASE, "rollout_dtype": "float32"}),
    )
    part = evolve(whole, cases=whole.cases[1:], reference=whole.cases[0])
    joined = merged(whole, part)
    assert [item.id for item in joined.cases] == ["b", "a"]
    assert joined.case("a").axes == {"rollout.dtype": "bfloat16"}


def test_an_added_axis_places_the_former_cases_by_what_their_sides_were_asked() -> None:
    former = plan(
        ("rollout.dtype",),
        case("a", {"rollout.dtype": "bfloat16"}, **BASE),
        case("b", {"rollout.dtype": "float32"}, rollout_dtype="float32", batch_size=8),
    )
    now = plan(
        ("batch.size",),
        case("a", {"batch.size": 8}, **BASE),
        case("c", {"batch.size": 1}, rollout_dtype="bfloat16", batch_size=1),
    )
    joined = merged(former, now)
    assert joined.dimensions == ("rollout.dtype", "batch.size")
    cells = {item.id: (item.axes["rollout.dtype"], item.axes["batch.size"]) for item in joined.cases}
    assert cells == {"a": ("bfloat16", 8), "b": ("float32", 8), "c": ("bfloat16", 1)}


def test_a_scorer_exchanged_between_runs_becomes_a_dimension() -> None:
    former = plan(("rollout.dtype",), case("a", {"rollout.dtype": "bfloat16"}, **BASE))
    other = evolve(former.cases[0], id="b", training=evolve(former.cases[0].training, scorer="other"))
    joined = merged(former, plan(("rollout.dtype",), other))
    assert joined.dimensions == ("rollout.dtype", "training.scorer")
    assert {item.id: item.axes["training.scorer"] for item in joined.cases} == {"b": "other", "a": "fake"}


def test_cases_that_no_coordinate_tells_apart_are_refused() -> None:
    former = plan(("rollout.dtype",), case("a", {"rollout.dtype": "bfloat16"}, **BASE))
    with pytest.raises(InvalidInput, match="nothing that is a coordinate"):
        merged(former, plan(("rollout.dtype",), evolve(former.cases[0], id="b")))

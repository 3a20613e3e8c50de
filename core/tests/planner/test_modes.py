"""What each mode makes of the axes, against plain enumerations of the same axes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xcfg.errors import InvalidInput, NothingSelected
from xcfg.model.case import Case, Rejection
from xcfg.model.experiment import Mode
from xcfg.model.plan import Plan

USUAL = {
    "batch.size": 8,
    "rollout.tensor_parallel_size": 1,
    "rollout.dtype": "bfloat16",
    "training.sharding": "unsharded",
}
AXES: dict[str, list[Any]] = {
    "batch.size": [8, 1, 2],
    "rollout.tensor_parallel_size": [1, 2],
    "rollout.dtype": ["bfloat16", "float32", "float16"],
    "training.sharding": ["full_shard", "hybrid"],
}
BOTH_DTYPES = {
    "rollout.dtype": ["bfloat16", "float32", "float16"],
    "training.compute_dtype": ["bfloat16", "float32", "float16"],
}


def points(cases: Any, names: Any = tuple(AXES)) -> list[tuple[Any, ...]]:
    return [tuple(case.axes[name] for name in names) for case in cases]


def distance(point: tuple[Any, ...]) -> int:
    return sum(value != usual for value, usual in zip(point, USUAL.values(), strict=True))


def every_point() -> list[tuple[Any, ...]]:
    return list(itertools.product(*(dict.fromkeys([USUAL[name], *values]) for name, values in AXES.items())))


@pytest.mark.parametrize(("mode", "most"), [(Mode.ONE_AT_A_TIME, 1), (Mode.TWO_AT_A_TIME, 2)])
def test_up_to_so_many_changes(bench: Any, mode: Mode, most: int) -> None:
    plan = bench.plan(bench.experiment(axes=AXES), mode=mode)
    expected = [point for point in every_point() if distance(point) <= most]
    assert sorted(points(plan.cases)) == sorted(expected)
    assert [len(case.changed) for case in plan.cases] == sorted(distance(point) for point in expected)
    assert len({case.id for case in plan.cases}) == len(expected)


def test_zip_takes_the_values_position_by_position(bench: Any) -> None:
    axes = {"batch.size": [8, 1, 2], "rollout.dtype": ["bf16", "fp32", "fp16"]}
    plan = bench.plan(bench.experiment(axes=axes), mode=Mode.ZIP)
    assert points(plan.cases, axes) == [(8, "bfloat16"), (1, "float32"), (2, "float16")]
    assert plan.cases[0].name == "baseline"


def test_zip_needs_axes_of_one_length(bench: Any) -> None:
    with pytest.raises(InvalidInput, match=r"rollout\.dtype has 2 values and batch\.size has 3") as caught:
        bench.plan(bench.experiment(axes={"batch.size": [8, 1, 2], "rollout.dtype": ["bf16", "fp32"]}, mode="zip"))
    assert caught.value.faults[0].where == "mode zip" and caught.value.faults[0].hint


def grid() -> list[dict[str, Any]]:
    return [dict(zip(AXES, row, strict=True)) for row in itertools.product(*AXES.values())]


def pairs_of(rows: list[dict[str, Any]]) -> set[Any]:
    return {pair for row in rows for pair in itertools.combinations(row.items(), 2)}


def covered(cases: Any, names: Any) -> set[Any]:
    return pairs_of([{name: case.axes[name] for name in names} for case in cases if case.rejected is None])


def test_pairwise_covers_every_two_values(bench: Any) -> None:
    plan = bench.plan(bench.experiment(axes=AXES), mode=Mode.PAIRWISE)
    assert pairs_of(grid()) <= covered(plan.cases, AXES)
    assert len(plan.cases) == 9  # as many as two axes of three values have pairs, one of them the baseline's


def test_the_baseline_counts_as_a_row_where_the_axes_hold_it(bench: Any) -> None:
    axes = {"batch.size": [8, 1], "rollout.tensor_parallel_size": [1, 2], "rollout.dtype": ["bf16", "fp32"]}
    plan = bench.plan(bench.experiment(axes=axes), mode=Mode.PAIRWISE)
    assert len(plan.cases) == 4
    assert plan.cases[0].name == "baseline"


def test_pairwise_keeps_clear_of_constraints(bench: Any) -> None:
    rule = {
        "reason": "only together",
        "when": {"rollout.dtype": ["fp16"]},
        "require": {"batch.size": [1], "training.compute_dtype": ["bf16"]},
    }
    elsewhere = {"reason": "never", "when": {"execution.prefix_cache": [True]}, "require": {"batch.size": [64]}}
    plan = bench.plan(bench.experiment(axes=AXES, constraints=[rule, elsewhere], mode="pairwise"))
    assert all(case.rejected is None for case in plan.cases)
    possible = [row for row in grid() if row["rollout.dtype"] != "float16" or row["batch.size"] == 1]
    assert pairs_of(possible) <= covered(plan.cases, AXES)


def test_pairwise_sets_values_aside_that_cannot_be_run_and_says_so(bench: Any) -> None:
    axes = {"rollout.tensor_parallel_size": [1, 2], "batch.size": [8, 1], "layout.padding_side": ["right", "left"]}
    plan = bench.plan(bench.experiment(rollout={"scorer": "plain"}, axes=axes, mode="pairwise"))
    rejected = [case for case in plan.cases if case.rejected]
    assert [case.changed for case in rejected] == [("rollout.tensor_parallel_size",)]
    assert "plain runs in one process" in rejected[0].rejected.reason
    assert {(case.axes["batch.size"], case.axes["layout.padding_side"]) for case in plan.runnable} == {
        (8, "right"), (8, "left"), (1, "right"), (1, "left")
    }  # fmt: skip


def test_pairwise_works_around_vetoes(bench: Any) -> None:
    def veto(case: Case, baseline: Case) -> Rejection | None:
        bad = case.rollout.knobs["rollout.dtype"] == "float32" and case.training.knobs["training.sharding"] == "hybrid"
        return Rejection(kind="veto", reason="not these two") if bad else None

    bench.catalog.veto = veto
    plan = bench.plan(bench.experiment(axes=AXES, mode="pairwise"))
    lost = pairs_of(grid()) - covered(plan.cases, AXES)
    assert lost == {(("rollout.dtype", "float32"), ("training.sharding", "hybrid"))}
    assert [case.rejected.reason for case in plan.cases if case.rejected] == ["not these two"]


def test_a_linked_axis_moves_its_knobs_together(bench: Any) -> None:
    plan = bench.plan(bench.experiment(axes={"batch.size": [8, 1]}, linked={"dtype": BOTH_DTYPES}))
    assert [case.changed for case in plan.cases] == [
        (),
        ("batch.size",),
        ("rollout.dtype", "training.compute_dtype"),
        ("rollout.dtype", "training.compute_dtype"),
    ]
    assert plan.dimensions == ("batch.size", "rollout.dtype", "training.compute_dtype")
    for mode, number in ((Mode.PRODUCT, 6), (Mode.TWO_AT_A_TIME, 6), (Mode.PAIRWISE, 6)):
        plan = bench.plan(bench.experiment(axes={"batch.size": [8, 1]}, linked={"dtype": BOTH_DTYPES}, mode=mode.value))
        assert len(plan.cases) == number
        assert all(case.axes["rollout.dtype"] == case.axes["training.compute_dtype"] for case in plan.cases)


def test_a_slice_may_name_a_linked_axis(bench: Any) -> None:
    changes = {"linked": {"dtype": BOTH_DTYPES}, "slices": {"s": {"axes": ["dtype"]}}, "axes": {"batch.size": [1]}}
    plan = bench.plan(bench.experiment(**changes), slice_name="s")
    assert [case.axes["rollout.dtype"] for case in plan.cases] == ["float32", "float16"]


def test_fixed_knobs_are_held_in_every_case_but_the_baseline(bench: Any) -> None:
    fixed = {"training.sharding": "hybrid", "rollout.dtype": "bf16"}
    axes = {"batch.size": [8, 1], "rollout.tensor_parallel_size": [1, 2]}
    cases = [{"name": "mine", "set": {"batch.size": 2}}]
    for mode, number in (("one_at_a_time", 4), ("two_at_a_time", 5), ("product", 5), ("pairwise", 5), ("zip", 3)):
        plan = bench.plan(bench.experiment(axes=axes, fixed=fixed, mode=mode, cases=cases))
        baseline, *others, mine = plan.cases
        assert len(others) == number - 1
        assert baseline.axes["training.sharding"] == mine.axes["training.sharding"] == "unsharded"
        assert {case.axes["training.sharding"] for case in others} == {"hybrid"}
        assert others[0].changed == ("training.sharding",)
        assert plan.dimensions == (*axes, "training.sharding")


def test_a_slice_does_not_count_fixed_knobs(bench: Any) -> None:
    content = {"axes": {"batch.size": [1]}, "fixed": {"training.sharding": "hybrid"}}
    plan = bench.plan(bench.experiment(**content, slices={"s": {"axes": ["batch.size"]}}), slice_name="s")
    assert [case.changed for case in plan.cases] == [("batch.size", "training.sharding")]


@pytest.mark.parametrize("mode", list(Mode))
def test_every_case_changes_what_it_shows_and_nothing_else(bench: Any, mode: Mode) -> None:
    axes = {"batch.size": [8, 1], "logp.backend": ["production", "reference"], "layout.padding_side": ["right", "left"]}
    linked = {"dtype": {name: values[:2] for name, values in BOTH_DTYPES.items()}}
    plan = bench.plan(bench.experiment(axes=axes, linked=linked), mode=mode)
    baseline = plan.cases[0]
    for case in plan.cases:
        found = {
            name
            for side, usual in ((case.rollout, baseline.rollout), (case.training, baseline.training))
            for name in {*side.knobs, *usual.knobs}
            if side.knobs.get(name) != usual.knobs.get(name)
        }
        assert (
            found == set(case.changed) == {name for name in plan.dimensions if case.axes[name] != baseline.axes[name]}
        )


def test_a_baseline_value_of_a_knob_without_meaning_is_no_case_of_its_own(bench: Any) -> None:
    usual = bench.catalog.materializer

    def ragged(knob: str, scorer: str) -> Any:
        found = usual(knob, scorer)
        return evolve(found, inapplicable="no padding here") if found and knob == "layout.padding_side" else found

    bench.catalog.materializer = ragged
    axes = {"layout.padding_side": ["right", "left"], "batch.size": [8, 1]}
    for mode in (Mode.ONE_AT_A_TIME, Mode.PRODUCT):
        plan = bench.plan(bench.experiment(axes=axes), mode=mode)
        assert {case.axes["layout.padding_side"] for case in plan.runnable} == {"right"}
        assert {case.axes["layout.padding_side"] for case in plan.cases if case.rejected} == {"left"}


def test_null_that_no_scorer_sees_asks_for_nothing(bench: Any) -> None:
    knobs = bench.catalog.all_knobs
    knobs["eng.seed"] = evolve(knobs["eng.seed"], default=7)
    for mode in Mode:
        experiment = bench.experiment(rollout={"scorer": "plain"}, axes={"eng.seed": [None], "batch.size": [1]})
        plan = bench.plan(experiment, mode=mode)
        assert [case.changed for case in plan.cases] == [(), ("batch.size",)]


VALUES = {
    "batch.size": [8, 1, 2, 4],
    "rollout.dtype": ["bfloat16", "float32", "float16"],
    "training.sharding": ["unsharded", "full_shard", "hybrid"],
    "rollout.tensor_parallel_size": [1, 2, 3],
}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_limit_is_compared_with_the_number_of_cases_there_would_be(bench: Any, data: st.DataObject) -> None:
    """The number in the refusal, counted beforehand, is that of the cases a wider limit lets through."""
    names = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, unique=True))
    axes = {name: data.draw(st.lists(st.sampled_from(VALUES[name]), min_size=1, unique=True)) for name in names}
    axes = {name: values for name, values in axes.items() if values != VALUES[name][:1]} or {"batch.size": [1]}
    mode = data.draw(st.sampled_from([Mode.ONE_AT_A_TIME, Mode.TWO_AT_A_TIME, Mode.PRODUCT]))
    wanted = data.draw(st.one_of(st.none(), st.sampled_from(sorted(VALUES))))
    filters = [f"{wanted}={data.draw(st.sampled_from(VALUES[wanted]))}"] if wanted else []
    experiment = bench.experiment(axes=axes)
    try:
        plan: Plan = bench.plan(experiment, mode=mode, filters=filters)
    except NothingSelected:
        return
    number = len(plan.cases)
    if number > 1:
        with pytest.raises(InvalidInput) as caught:
            bench.plan(experiment, mode=mode, filters=filters, max_cases=number - 1)
        said = int(caught.value.faults[0].message.split()[0])
        assert said == number

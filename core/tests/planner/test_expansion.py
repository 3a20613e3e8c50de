from __future__ import annotations

import itertools
from typing import Any

import pytest

from xcfg.errors import InvalidInput
from xcfg.model.codec import dump_json, load_json, structure
from xcfg.model.experiment import Mode
from xcfg.model.plan import Plan

AXES = {
    "rollout.dtype": ["bf16", "fp32", "fp16"],
    "batch.size": [8, 1],
    "training.compute_dtype": ["bf16", "fp32"],
}


def test_one_at_a_time_is_the_sum_of_the_values(bench: Any, names: Any) -> None:
    plan = bench.plan(bench.experiment(axes=AXES))
    assert names(plan) == [
        ("baseline",),
        ("rollout.dtype",),
        ("rollout.dtype",),
        ("batch.size",),
        ("training.compute_dtype",),
    ]
    assert plan.dimensions == tuple(AXES)
    assert plan.cases[0].id == plan.baseline
    assert dict(plan.cases[3].axes) == {
        "rollout.dtype": "bfloat16",
        "batch.size": 1,
        "training.compute_dtype": "bfloat16",
    }


def test_product_is_every_combination_once(bench: Any) -> None:
    plan = bench.plan(bench.experiment(axes=AXES, mode="product"))
    found = [tuple(case.axes[name] for name in AXES) for case in plan.cases]
    dtypes = {"bf16": "bfloat16", "fp32": "float32", "fp16": "float16"}
    expected = [tuple(dtypes.get(value, value) for value in row) for row in itertools.product(*AXES.values())]
    assert sorted(found) == sorted(expected)
    assert found[0] == ("bfloat16", 8, "bfloat16")
    assert plan.cases[0].name == "baseline"
    assert len({case.id for case in plan.cases}) == len(expected) == 12


def test_a_baseline_outside_the_axes_is_one_case_more(bench: Any) -> None:
    plan = bench.plan(bench.experiment(axes={"batch.size": [1, 2]}, mode="product"))
    assert [case.axes["batch.size"] for case in plan.cases] == [8, 1, 2]


def test_the_mode_can_be_replaced(bench: Any) -> None:
    experiment = bench.experiment(axes=AXES)
    plan = bench.plan(experiment, mode=Mode.PRODUCT)
    assert len(plan.cases) == 12
    assert plan.experiment.mode is Mode.PRODUCT


def test_without_axes_there_is_the_baseline(bench: Any, names: Any) -> None:
    for mode in Mode:
        plan = bench.plan(mode=mode)
        assert names(plan) == [("baseline",)]
        assert plan.dimensions == ()


def test_a_product_too_large_is_counted_and_not_made(bench: Any) -> None:
    sizes = list(range(1, 65))
    axes = {
        "batch.size": sizes,
        "rollout.tensor_parallel_size": list(range(1, 1001)),
        "rollout.dtype": ["fp32", "bf16"],
    }
    axes["sampling.temperature"] = [0.5 + step / 1000 for step in range(1000)]
    experiment = bench.experiment(axes=axes, mode="product")
    with pytest.raises(InvalidInput, match="128000000 cases, more than the 256 allowed") as caught:
        bench.plan(experiment)
    assert "--max-cases" in caught.value.faults[0].hint


def test_max_cases_counts_the_cases_there_are(bench: Any) -> None:
    experiment = bench.experiment(axes=AXES)
    assert len(bench.plan(experiment, max_cases=5).cases) == 5
    with pytest.raises(InvalidInput, match="5 cases, more than the 4 allowed"):
        bench.plan(experiment, max_cases=4)


def test_filters_narrow_a_product_before_it_is_counted(bench: Any) -> None:
    axes = {"batch.size": list(range(1, 65)), "rollout.tensor_parallel_size": list(range(1, 101))}
    experiment = bench.experiment(axes=axes, mode="product")
    plan = bench.plan(experiment, filters=["rollout.tensor_parallel_size=[1, 2]"], max_cases=128)
    assert len(plan.cases) == 128


def test_explicit_cases_come_last_and_widen_the_dimensions(bench: Any, names: Any) -> None:
    cases = [
        {"name": "fp32", "set": {"rollout.dtype": "fp32", "training.compute_dtype": "fp32"}},
        {"name": "plain", "rollout": {"scorer": "plain"}, "training": {"scorer": "plain"}},
        {"name": "cold", "set": {"execution.prefix_cache": True, "sampling.temperature": 1}},
    ]
    plan = bench.plan(bench.experiment(axes={"rollout.dtype": ["fp32"]}, cases=cases))
    assert names(plan) == [("baseline",), ("rollout.dtype",), ("fp32",), ("plain",), ("cold",)]
    assert plan.dimensions == (
        "rollout.dtype",
        "execution.prefix_cache",
        "training.compute_dtype",
        "rollout.scorer",
        "training.scorer",
    )
    assert plan.cases[3].changed == ("rollout.scorer", "training.scorer")
    assert dict(plan.cases[3].axes)["rollout.scorer"] == "plain"
    assert dict(plan.cases[0].axes)["rollout.scorer"] == "eng"


def test_cases_that_vary_a_checkpoint_have_coordinates_of_their_own(bench: Any) -> None:
    cases = [
        {"name": "r", "training": {"checkpoint": {"path": "model", "revision": "r"}}},
        {"name": "w", "training": {"checkpoint": {"path": "model", "weight_version": "3"}}},
        {"name": "t", "training": {"checkpoint": {"path": "model", "trust_remote_code": True}}},
    ]
    plan = bench.plan(bench.experiment(cases=cases))
    assert plan.dimensions == ("training.checkpoint",)
    assert [case.axes["training.checkpoint"] for case in plan.cases] == [
        "model",
        "model@r",
        "model weights 3",
        "model with remote code",
    ]


def test_equal_cases_are_one_and_keep_the_name_a_user_gave(bench: Any, names: Any) -> None:
    cases = [
        {"name": "single", "set": {"rollout.dtype": "fp32"}},
        {"name": "again", "set": {"rollout.dtype": "float32"}},
        {"name": "same", "set": {"batch.size": 8}},
    ]
    experiment = bench.experiment(axes={"rollout.dtype": ["fp32"]}, cases=cases)
    plan = bench.plan(experiment)
    assert names(plan) == [("baseline",), ("single",)]
    assert plan.dimensions == ("rollout.dtype",)


def test_a_plan_survives_json(bench: Any) -> None:
    cases = [{"name": "plain", "rollout": {"scorer": "plain"}, "set": {"rollout.tensor_parallel_size": 2}}]
    plan = bench.plan(bench.experiment(axes=AXES, cases=cases), filters=["name!=baseline"])
    again = structure(load_json(dump_json(plan)), Plan)
    assert again == plan
    assert again.case(plan.baseline).name == "baseline"
    assert [case.rollout.digest() for case in again.cases] == [case.rollout.digest() for case in plan.cases]

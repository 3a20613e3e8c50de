from __future__ import annotations

from typing import Any

import pytest

from xcfg.errors import InvalidInput, NothingSelected

CONTENT = {
    "axes": {"rollout.dtype": ["bf16", "fp32"], "batch.size": [8, 1], "layout.padding_side": ["left"]},
    "cases": [
        {"name": "both", "set": {"rollout.dtype": "fp32", "training.compute_dtype": "fp32"}},
        {"name": "plain", "rollout": {"scorer": "plain"}},
        {"name": "alias", "set": {"batch.size": 1}},
        {"name": "mixed", "set": {"rollout.dtype": "fp32", "batch.size": 1}},
    ],
    "slices": {
        "production": {"baseline": True},
        "named": {"cases": ["plain", "baseline"]},
        "alias": {"cases": ["alias"]},
        "axes": {"axes": ["rollout.dtype", "batch.size"]},
        "arithmetic": {"source_classes": ["arithmetic"]},
        "union": {"baseline": True, "cases": ["plain"], "source_classes": ["logical"]},
    },
}
FP32, BATCH, LEFT = ("rollout.dtype",), ("alias",), ("layout.padding_side",)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", [("baseline",), FP32, BATCH, LEFT, ("both",), ("plain",), ("mixed",)]),
        ("production", [("baseline",)]),
        ("named", [("baseline",), ("plain",)]),
        ("alias", [BATCH]),
        ("axes", [FP32, BATCH, ("mixed",)]),
        ("arithmetic", [FP32, ("both",)]),
        ("union", [("baseline",), LEFT, ("plain",)]),
    ],
)
def test_slices(bench: Any, names: Any, name: str, expected: list[tuple[str, ...]]) -> None:
    assert names(bench.plan(bench.experiment(**CONTENT), slice_name=name)) == expected


def test_a_selection_changes_neither_ids_nor_dimensions(bench: Any) -> None:
    experiment = bench.experiment(**CONTENT)
    whole = bench.plan(experiment)
    part = bench.plan(experiment, slice_name="arithmetic")
    assert part.dimensions == whole.dimensions
    assert {case.id for case in part.cases} < {case.id for case in whole.cases}
    assert part.baseline == whole.baseline
    assert part.reference == whole.cases[0] == part.case(part.baseline)
    assert whole.reference is None


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["rollout.dtype=fp32"], [FP32, ("both",), ("mixed",)]),
        (["rollout.dtype=fp32", "batch.size!=1"], [FP32, ("both",)]),
        (["batch.size = [1, 2]"], [BATCH, ("mixed",)]),
        (["rollout.scorer=plain"], [("plain",)]),
        (["name=[both, baseline]"], [("baseline",), ("both",)]),
        (["training.compute_dtype=fp32"], [("both",)]),
    ],
)
def test_filters(bench: Any, names: Any, filters: list[str], expected: list[tuple[str, ...]]) -> None:
    assert names(bench.plan(bench.experiment(**CONTENT), filters=filters)) == expected


def test_a_slice_and_filters_both_hold(bench: Any, names: Any) -> None:
    plan = bench.plan(bench.experiment(**CONTENT), slice_name="axes", filters=["batch.size=1"])
    assert names(plan) == [BATCH, ("mixed",)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"slice_name": "arithmetics"}, "--slice: unknown slice 'arithmetics', did you mean 'arithmetic'?"),
        ({"filters": ["rollout.dtyp=fp32"]}, "did you mean 'rollout.dtype'?"),
        ({"filters": ["rollout.dtype=int4"]}, "'int4' is not accepted"),
        ({"filters": ["rollout.dtype"]}, "a filter has the form KNOB=VALUE or KNOB!=VALUE"),
        ({"filters": ["batch.size=["]}, "--filter batch.size="),
    ],
)
def test_a_wrong_selection_is_named(bench: Any, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        bench.plan(bench.experiment(**CONTENT), **options)
    assert expected in str(caught.value)


def test_nothing_selected(bench: Any) -> None:
    experiment = bench.experiment(**CONTENT)
    with pytest.raises(NothingSelected, match="no case is left of 7") as caught:
        bench.plan(experiment, slice_name="production", filters=["rollout.dtype=fp32"])
    assert caught.value.faults[0].where == "--slice production --filter rollout.dtype=fp32"

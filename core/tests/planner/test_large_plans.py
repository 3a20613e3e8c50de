"""Plans that are large: refused with their number, or made one case after the other."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import pytest

from xcfg.errors import InvalidInput
from xcfg.model.experiment import Mode
from xcfg.planner.build import plan_cases

SIZES = list(range(1, 65))


def large(bench: Any, temperatures: int, **changes: Any) -> Any:
    axes = {
        "batch.size": SIZES,
        "rollout.tensor_parallel_size": list(range(1, 101)),
        "sampling.temperature": [1.0 + step / 100 for step in range(temperatures)],
        "training.sharding": ["unsharded", "hybrid"],
    }
    return bench.experiment(axes=axes, mode="product", **changes)


@pytest.mark.parametrize(
    ("mode", "number"),
    [
        (Mode.PRODUCT, 64 * 100 * 1200 * 2),
        (Mode.TWO_AT_A_TIME, 1 + 63 + 99 + 1199 + 1 + 63 * 99 + (63 + 99) * 1199 + 63 + 99 + 1199),
        (Mode.PAIRWISE, 100 * 1200),
        (Mode.ONE_AT_A_TIME, 1 + 63 + 99 + 1199 + 1),
    ],
)
def test_a_plan_that_is_too_large_is_refused_with_its_number(bench: Any, mode: Mode, number: int) -> None:
    experiment = large(bench, 1200)
    with pytest.raises(InvalidInput) as caught:
        bench.plan(experiment, mode=mode)
    fault = caught.value.faults[0]
    assert f"{number} cases, more than the 256 allowed" in fault.message
    assert fault.message.startswith("at least") is (mode is Mode.PAIRWISE)
    assert "--max-cases" in fault.hint and fault.where == "axes"


def test_linked_axes_count_as_one(bench: Any) -> None:
    linked = {"both": {"rollout.dtype": ["bf16", "fp32"], "training.compute_dtype": ["bf16", "fp32"]}}
    with pytest.raises(InvalidInput, match=rf"^axes: {64 * 100 * 1200 * 2 * 2} cases"):
        bench.plan(large(bench, 1200, linked=linked))


def test_ten_million_cases_come_one_by_one_in_constant_memory(bench: Any) -> None:
    rule = {"reason": "r", "when": {"batch.size": [3]}, "require": {"training.sharding": ["hybrid"]}}
    experiment = large(bench, 1200, constraints=[rule])
    cases = plan_cases(experiment, root=bench.root, registry=bench.catalog)
    tracemalloc.start()
    seen = {next(cases).id}
    peaks = []
    for _ in range(3):
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        ids = {case.id for case in itertools.islice(cases, 3000)}
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
        assert len(ids) == 3000 and not ids & seen
        seen |= ids
    tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[0]
    assert peaks[2] < 20e6


def test_cases_one_by_one_are_those_of_the_plan(bench: Any) -> None:
    axes = {"batch.size": [1, 2, 3], "rollout.dtype": ["bf16", "fp32"], "training.sharding": ["hybrid"]}
    cases = [{"name": "mine", "set": {"batch.size": 3}}, {"name": "plain", "rollout": {"scorer": "plain"}}]
    experiment = bench.experiment(axes=axes, cases=cases, slices={"s": {"axes": list(axes)}})
    for mode in Mode:
        if mode is Mode.ZIP:
            continue
        for filters in ((), ("batch.size!=2",)):
            options = {"mode": mode, "filters": filters, "slice_name": "s"}
            plan = bench.plan(experiment, **options)
            assert tuple(plan_cases(experiment, root=bench.root, registry=bench.catalog, **options)) == plan.cases


def test_a_product_of_all_sizes_is_in_the_order_of_the_file(bench: Any) -> None:
    axes = {"rollout.dtype": ["fp32", "fp16"], "batch.size": SIZES, "rollout.tensor_parallel_size": list(range(1, 41))}
    experiment = bench.experiment(axes=axes, mode="product")
    cases = list(plan_cases(experiment, root=bench.root, registry=bench.catalog))
    assert len(cases) == 1 + math.prod(map(len, axes.values()))
    found = [tuple(case.axes.values()) for case in cases[1:]]
    assert found == list(itertools.product(["float32", "float16"], SIZES, range(1, 41)))
    assert len({case.id for case in cases}) == len(cases)

"""Ablation profiles: everything aligned but what a profile leaves at production."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from attrs import evolve

from xcfg.builtin.profiles import PROFILES
from xcfg.errors import InvalidInput, NothingSelected
from xcfg.model.case import Case, Rejection
from xcfg.model.experiment import Mode
from xcfg.model.knob import SourceClass
from xcfg.planner.build import unaligned
from xcfg.planner.profiles import pairs_needed

ALIGNED = {
    "rollout.dtype": {"rollout.dtype": "float32"},
    "training.compute_dtype": {"training.compute_dtype": "float32"},
    "logp.backend": {"logp.backend": "reference"},
    "rollout.tensor_parallel_size": {"rollout.tensor_parallel_size": 1},
    "training.sharding": {"training.sharding": "unsharded"},
    "batch.size": {"batch.size": 1},
    "layout.padding_side": {"layout.padding_side": "right"},
    "execution.prefix_cache": {"execution.prefix_cache": False},
    "sampling.temperature": {"sampling.temperature": 1.0},
}
PRODUCTION = {
    "rollout.dtype": "bf16",
    "training.sharding": "full_shard",
    "rollout.tensor_parallel_size": 2,
    "execution.prefix_cache": True,
    "batch.size": 8,
}
ARITHMETIC = {"rollout.dtype": "float32", "training.compute_dtype": "float32", "logp.backend": "reference"}
REDUCTION = {"rollout.tensor_parallel_size": 1, "training.sharding": "unsharded", "batch.size": 1}
EXECUTION = {"execution.prefix_cache": False}


@pytest.fixture
def aligned(bench: Any) -> Any:
    """The bench, its knobs with aligned assignments; ``eng.seed`` has none."""
    knobs = bench.catalog.all_knobs
    for name, assignment in ALIGNED.items():
        knobs[name] = evolve(knobs[name], aligned=assignment)
    return bench


def sets(case: Case) -> dict[str, Any]:
    return {name: case.axes[name] for name in case.changed}


def profile(bench: Any, *names: str, **changes: Any) -> dict[str, dict[str, Any]]:
    plan = bench.plan(bench.experiment(**{"baseline": PRODUCTION, **changes}), profiles=names)
    return {case.name: sets(case) for case in plan.cases}


def left_over(bench: Any, *names: str, **changes: Any) -> dict[str, str]:
    experiment = bench.experiment(**{"baseline": PRODUCTION, **changes})
    return dict(unaligned(experiment, root=bench.root, registry=bench.catalog, profiles=names))


def test_each_class_alone_is_what_is_left_of_production(aligned: Any) -> None:
    assert profile(aligned, "A0") == {"A0": {**ARITHMETIC, **REDUCTION, **EXECUTION}}
    assert profile(aligned, "A1") == {"A1": {**REDUCTION, **EXECUTION}}
    assert profile(aligned, "A2") == {"A2": {**ARITHMETIC, **EXECUTION}}
    assert profile(aligned, "A3") == {"A3": {**ARITHMETIC, **REDUCTION, **EXECUTION}}
    assert profile(aligned, "A5") == {"baseline": {}}


def test_a4_is_the_pairs_of_those_classes(aligned: Any) -> None:
    knobs = aligned.catalog.all_knobs
    knobs["layout.padding_side"] = evolve(knobs["layout.padding_side"], source_class=SourceClass.REPRESENTATION)
    found = profile(aligned, "A4", baseline={**PRODUCTION, "layout.padding_side": "left"})
    right = {"layout.padding_side": "right"}
    assert found == {
        "A4 arithmetic+reduction": {**right, **EXECUTION},
        "A4 arithmetic+representation": {**REDUCTION, **EXECUTION},
        "A4 reduction+representation": {**ARITHMETIC, **EXECUTION},
    }


def test_the_profiles_are_those_of_the_contract() -> None:
    single = [SourceClass.ARITHMETIC, SourceClass.REDUCTION, SourceClass.REPRESENTATION]
    assert {item.id: [set(classes) for classes in item.profile.differ] for item in PROFILES if item.profile} == {
        "A0": [set()],
        "A1": [{single[0]}],
        "A2": [{single[1]}],
        "A3": [{single[2]}],
        "A4": [set(pair) for pair in itertools.combinations(single, 2)],
        "A5": [set(SourceClass)],
    }


def test_a4_is_needed_when_singles_do_not_explain() -> None:
    clean = {"A0": True, "A1": True, "A2": True, "A3": True}
    assert pairs_needed({**clean, "A5": False})
    assert not pairs_needed({**clean, "A5": True})
    assert not pairs_needed(clean)
    for name in clean:
        assert not pairs_needed({**clean, name: False, "A5": False})
        assert not pairs_needed({other: True for other in clean if other != name} | {"A5": False})


def test_profiles_together_share_dimensions_and_ids(aligned: Any) -> None:
    experiment = aligned.experiment(baseline=PRODUCTION, axes={"batch.size": [8, 2]})
    whole = aligned.plan(experiment, profiles=[item.id for item in PROFILES])
    assert [case.name for case in whole.cases[:4]] == ["baseline", "A0", "A1", "A2"]
    for name in aligned.catalog.profiles():
        part = aligned.plan(experiment, profiles=[name])
        assert part.dimensions == whole.dimensions
        assert {case.id for case in part.cases} <= {case.id for case in whole.cases}
        assert part.baseline == whole.baseline
        assert part.case(part.baseline).name == "baseline"


def test_equal_profiles_are_one_case_under_the_first_name(aligned: Any) -> None:
    plan = aligned.plan(aligned.experiment(baseline=PRODUCTION), profiles=["A0", "A3"])
    assert [case.name for case in plan.cases] == ["A0"]


def test_the_experiment_may_state_assignments_and_profiles(aligned: Any) -> None:
    changes = {
        "aligned": {"rollout.dtype": {"rollout.dtype": "fp16", "training.compute_dtype": "fp16"},
                    "training.compute_dtype": {"rollout.dtype": "fp16", "training.compute_dtype": "fp16"}},
        "profiles": {"E1": {"summary": "s", "differ": [["execution", "reduction"], ["execution"]]}},
    }  # fmt: skip
    half = {"rollout.dtype": "float16", "training.compute_dtype": "float16", "logp.backend": "reference"}
    assert profile(aligned, "E1", **changes) == {
        "E1 execution+reduction": half,
        "E1 execution": {**half, **REDUCTION},
    }


def test_without_an_assignment_the_rollout_side_takes_the_value_of_the_training_side(aligned: Any) -> None:
    knobs = aligned.catalog.all_knobs
    for side, like, usual in (
        ("rollout", "rollout.dtype", "bfloat16"),
        ("training", "training.compute_dtype", "float32"),
    ):
        name = f"{side}.norm"
        knobs[name] = evolve(knobs[like], name=name, aligned={}, default=usual)
    usual_how = aligned.catalog.materializer
    one_sided: dict[str, tuple[str, ...]] = {}

    def how(name: str, scorer: str) -> Any:
        stand_in = {"rollout.norm": "rollout.dtype", "training.norm": "training.compute_dtype"}.get(name, name)
        found = usual_how(stand_in, scorer)
        return found and evolve(found, knob=name, values=one_sided.get(name, found.values))

    aligned.catalog.materializer = how
    assert profile(aligned, "A0")["A0"].get("rollout.norm") == "float32"
    one_sided["rollout.norm"] = ("bfloat16",)
    found = profile(aligned, "A0")["A0"]
    assert "rollout.norm" not in found and found["training.norm"] == "bfloat16"
    one_sided["training.norm"] = ("float32",)
    assert "neither side can take the value of the other" in left_over(aligned, "A0")["rollout.norm"]


def test_what_cannot_be_aligned_is_told(aligned: Any) -> None:
    knobs = aligned.catalog.all_knobs
    knobs["rollout.tensor_parallel_size"] = evolve(
        knobs["rollout.tensor_parallel_size"], aligned={"rollout.tensor_parallel_size": 3}
    )
    found = left_over(aligned, "A0", rollout={"scorer": "plain"}, baseline={"rollout.tensor_parallel_size": 1})
    assert list(found) == ["rollout.tensor_parallel_size"]
    assert found["rollout.tensor_parallel_size"].endswith("but only 1 (plain runs in one process)")
    found = left_over(aligned, "A0", baseline={**PRODUCTION, "eng.seed": 3})
    assert found == {"eng.seed": "no aligned value is declared; say under `aligned` what aligning it sets"}
    assert left_over(aligned, "A0") == {}
    chosen = {"selected_logprob": {"training": "production"}}
    assert left_over(aligned, "A0", operators=chosen)["logp.backend"] == "operators.selected_logprob chooses it"


def test_an_alignment_that_is_vetoed_is_left_out_and_told(aligned: Any) -> None:
    def veto(case: Case, baseline: Case) -> Rejection | None:
        both = case.rollout.knobs["rollout.dtype"] == "float32" and case.rollout.knobs["batch.size"] == 1
        return Rejection(kind="veto", reason="not these two") if both else None

    aligned.catalog.veto = veto
    # Of the two, the experiment speaks of rollout.dtype alone: batch.size goes first.
    baseline = {name: value for name, value in PRODUCTION.items() if name != "batch.size"}
    found = profile(aligned, "A0", baseline=baseline)["A0"]
    assert "batch.size" not in found and found["rollout.dtype"] == "float32"
    assert left_over(aligned, "A0", "A1", "A3", baseline=baseline) == {"batch.size": "not these two (in A0, A3)"}


def test_two_alignments_left_out_have_a_reason_each(aligned: Any) -> None:
    def veto(case: Case, baseline: Case) -> Rejection | None:
        if case.rollout.knobs["batch.size"] == 1:
            return Rejection(kind="veto", reason="no single rows")
        if case.training.knobs["training.sharding"] == "unsharded":
            return Rejection(kind="veto", reason="always sharded")
        return None

    aligned.catalog.veto = veto
    assert left_over(aligned, "A0") == {
        "batch.size": "no single rows (in A0)",
        "training.sharding": "always sharded (in A0)",
    }


def test_a_case_that_nothing_helps_is_rejected_in_full(aligned: Any) -> None:
    aligned.catalog.veto = lambda case, baseline: Rejection(kind="veto", reason="never") if case.changed else None
    plan = aligned.plan(aligned.experiment(baseline=PRODUCTION), profiles=["A0"])
    assert [case.rejected.reason for case in plan.cases if case.rejected] == ["never"]
    assert sets(plan.cases[0]) == {**ARITHMETIC, **REDUCTION, **EXECUTION}


def test_assignments_that_contradict_each_other(aligned: Any) -> None:
    contradicting = {"rollout.dtype": {"batch.size": 2}}
    with pytest.raises(InvalidInput, match=r"aligning rollout\.dtype sets batch\.size to 2") as caught:
        profile(aligned, "A0", aligned=contradicting)
    assert caught.value.faults[0].where == "aligned.rollout.dtype"


def test_wrong_profiles(aligned: Any) -> None:
    experiment = aligned.experiment(profiles={"E1": {"differ": [["execution"]]}})
    with pytest.raises(InvalidInput, match="unknown profile 'A6'") as caught:
        aligned.plan(experiment, profiles=["A6"])
    assert caught.value.faults[0].where == "--profile"
    assert caught.value.faults[0].hint == "there are A0, A1, A2, A3, A4, A5, E1"
    with pytest.raises(InvalidInput, match="in no mode"):
        aligned.plan(experiment, profiles=["A0"], mode=Mode.PRODUCT)
    with pytest.raises(NothingSelected) as nothing:
        aligned.plan(experiment, profiles=["A0"], filters=["batch.size=64"])
    assert nothing.value.faults[0].where == "--profile A0 --filter batch.size=64"

"""Axes, held knobs, alignments, profiles and constraints that make no sense: each an error with its place and hint."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from xcfg.errors import InvalidInput, NothingSelected, PluginError
from xcfg.exitcodes import ExitCode

DTYPES = {"rollout.dtype": ["bf16", "fp32"], "training.compute_dtype": ["bf16", "fp32"]}
ONLY = {"reason": "r1", "require": {"batch.size": [1, 2]}}


@pytest.mark.parametrize(
    ("changes", "place", "expected"),
    [
        ({"axes": {"batch.size": [8]}}, "axes.batch.size", "varies nothing: batch.size=8 is the baseline's value"),
        ({"axes": {"batch.size": [4]}, "baseline": {"batch.size": 4}}, "axes.batch.size", "varies nothing"),
        ({"axes": {"execution.prefix_cache": [False]}}, "axes.execution.prefix_cache", "execution.prefix_cache=false"),
        ({"axes": {"eng.seed": [None]}}, "axes.eng.seed", "eng.seed=null"),
        ({"axes": {"batch.size": []}}, "axes.batch.size", "an axis needs at least one value"),
        ({"axes": {"batch.size": [1]}, "fixed": {"batch.size": 2}}, "fixed.batch.size", "hides the axis 'batch.size'"),
        ({"linked": {"d": DTYPES}, "fixed": {"rollout.dtype": "fp16"}}, "fixed.rollout.dtype", "hides the axis 'd'"),
        ({"fixed": {"batch.size": 0}}, "fixed.batch.size", "0 is out of range"),
        ({"fixed": {"batch.sise": 1}}, "fixed.batch.sise", "did you mean 'batch.size'?"),
        ({"baseline": {"rollout.dtype": "int4"}}, "baseline.rollout.dtype", "'int4' is not accepted"),
        ({"linked": {"d": {}}}, "linked.d", "a linked axis needs knobs"),
        ({"linked": {"d": {**DTYPES, "batch.size": [1]}}}, "linked.d", "as many values each: rollout.dtype has 2"),
        ({"linked": {"d": {**DTYPES, "batch.sise": [1, 2]}}}, "linked.d.batch.sise", "did you mean 'batch.size'?"),
        ({"linked": {"d": {"rollout.dtype": ["bf16", "x"]}}}, "linked.d.rollout.dtype.1", "'x' is not accepted"),
        ({"linked": {"d": {"rollout.dtype": ["bf16"]}}}, "linked.d", "the linked axis varies nothing"),
        ({"linked": {"d": {"rollout.dtype": "bf16"}}}, "linked.d.rollout.dtype", "expected a list"),
        (
            {"linked": {"d": {name: ["fp32", "bf16", "float32"] for name in DTYPES}}},
            "linked.d.rollout.dtype.2",
            "position 3 repeats an earlier one in every knob",
        ),
        (
            {"axes": {"rollout.dtype": ["fp32"]}, "linked": {"d": DTYPES}},
            "linked.d.rollout.dtype",
            "'rollout.dtype' is moved by an axis already",
        ),
        (
            {"linked": {"d": DTYPES, "e": {"rollout.dtype": ["fp16"]}}},
            "linked.e.rollout.dtype",
            "'rollout.dtype' is moved by the linked axis 'd' already",
        ),
        (
            {"axes": {"batch.size": [1]}, "linked": {"batch.size": DTYPES}},
            "linked.batch.size",
            "'batch.size' is an axis already",
        ),
        ({"aligned": {"batch.sise": {}}}, "aligned.batch.sise", "did you mean 'batch.size'?"),
        ({"aligned": {"batch.size": {"batch.sise": 1}}}, "aligned.batch.size.batch.sise", "did you mean 'batch.size'?"),
        ({"aligned": {"batch.size": {"batch.size": 0}}}, "aligned.batch.size.batch.size", "0 is out of range"),
        ({"profiles": {"A1": {"differ": [[]]}}}, "profiles.A1", "'A1' is a profile of xcfg, take another name"),
        ({"profiles": {"E": {"differ": []}}}, "profiles.E", "the profile has no case"),
        ({"profiles": {" ": {"differ": [[]]}}}, "profiles.", "a profile needs a name"),
        ({"profiles": {"E": {"differ": [["arithmetics"]]}}}, "profiles.E.differ.0.0", "'arithmetics' is not one of"),
        ({"profiles": {"E": {}}}, "profiles.E.differ", "this field is required"),
        ({"profile": "A1"}, "profile", "'profile' is an option of `xcfg run`"),
        ({"constraints": [{"reason": "r", "when": {"batch.size": [1]}}]}, "constraints.0", "requires nothing"),
        (
            {"constraints": [ONLY, {"reason": "r2", "require": {"batch.size": [4]}}]},
            "constraints.1.require.batch.size",
            "constraints 0 and 1 contradict each other: no value of batch.size satisfies both",
        ),
        ({"fixed": {"logp.backend": "refrence"}}, "fixed.logp.backend", "did you mean 'reference'?"),
        ({"linked": {"d": {"logp.backend": ["nope"]}}}, "linked.d.logp.backend.0", "unknown backend 'nope'"),
        (
            {"fixed": {"logp.backend": "reference"}, "operators": {"selected_logprob": {"training": "production"}}},
            "fixed.logp.backend",
            "logp.backend is varied, so operators.selected_logprob cannot fix it",
        ),
    ],
)  # fmt: skip
def test_each_is_named_with_its_place(bench: Any, changes: dict[str, Any], place: str, expected: str) -> None:
    found = [fault for fault in bench.faults(bench.minimal(**changes)) if expected in fault]
    assert len(found) == 1
    assert f" {place}: " in found[0]


def test_places_have_a_line(bench: Any) -> None:
    text = "schema: xcfg.experiment/1\nname: small\ncheckpoint: {path: model}\nrollout: {scorer: eng}\n"
    text += "training: {scorer: trainer}\ntokens: {sample: {prompts: prompts.jsonl}}\n"
    text += "axes:\n  batch.size: [8]\n  rollout.dtype: [fp32]\nfixed: {rollout.dtype: fp16}\n"
    text += "profiles: {A0: {differ: [[]]}}\nlinked: {d: {training.sharding: [hybrid], batch.size: []}}\n"
    places = [fault.split(": ")[0] for fault in bench.faults(text, name="e.yaml")]
    assert places == [
        "e.yaml:8:15 axes.batch.size",
        "e.yaml:10:9 fixed.rollout.dtype",
        "e.yaml:11:12 profiles.A0",
        "e.yaml:12:13 linked.d",
        "e.yaml:12:43 linked.d.batch.size",
    ]


@pytest.mark.parametrize("override", ["fixed.rollout.dtype=fp16", "linked.d.rollout.dtype=[fp16, fp32]"])
def test_an_override_that_hides_an_axis(bench: Any, override: str) -> None:
    content = bench.minimal(axes={"rollout.dtype": ["fp32"]}, linked={"d": {"batch.size": [1, 2]}})
    found = bench.faults(content, override)
    assert any(fault.startswith(f"override {override.split('=')[0]}: ") for fault in found)


def test_an_override_that_leaves_an_axis_nothing_to_vary(bench: Any) -> None:
    content = bench.minimal(axes={"rollout.dtype": ["fp32"]})
    (found,) = bench.faults(content, "baseline.rollout.dtype=fp32")
    assert "axes.rollout.dtype: the axis varies nothing" in found
    (found,) = bench.faults(content, "axes.rollout.dtype=[bf16]")
    assert found.startswith("override axes.rollout.dtype: the axis varies nothing")


def test_held_knobs_linked_axes_and_alignments_can_be_overridden(bench: Any) -> None:
    content = bench.minimal(linked={"d.x": DTYPES})
    made = bench.load(
        content,
        "fixed.batch.size=2",
        "linked.d.x.rollout.dtype=[fp16, fp32]",
        "aligned.batch.size.batch.size=1",
        "aligned.rollout.dtype={rollout.dtype: fp32}",
    ).experiment
    assert dict(made.fixed) == {"batch.size": 2}
    assert made.linked["d.x"]["rollout.dtype"] == ("float16", "float32")
    assert {name: dict(sets) for name, sets in made.aligned.items()} == {
        "batch.size": {"batch.size": 1},
        "rollout.dtype": {"rollout.dtype": "float32"},
    }


def test_the_same_condition_written_otherwise_is_the_same(bench: Any) -> None:
    rules = [
        {"reason": "a", "when": {"rollout.dtype": ["bf16", "fp32"]}, "require": {"batch.size": [1]}},
        {"reason": "b", "when": {"rollout.dtype": ["fp32", "bfloat16"]}, "require": {"batch.size": [2]}},
    ]
    assert len(bench.faults(bench.minimal(constraints=rules))) == 1
    rules[1]["when"] = {"rollout.dtype": ["fp32"]}
    assert bench.experiment(constraints=rules)


def test_constraints_that_leave_no_case(bench: Any) -> None:
    rules = [
        {"reason": "one rank", "when": {"rollout.dtype": ["bf16"]}, "require": {"batch.size": [1]}},
        {"reason": "two ranks", "when": {"rollout.dtype": ["fp32"]}, "require": {"batch.size": [2]}},
    ]
    for mode in ("one_at_a_time", "product", "pairwise"):
        experiment = bench.experiment(axes={"rollout.dtype": ["bf16", "fp32"]}, constraints=rules, mode=mode)
        with pytest.raises(InvalidInput, match="the constraints leave none of 2 cases, the base") as caught:
            bench.plan(experiment)
        assert caught.value.faults[0].where == "constraints"
        assert caught.value.faults[0].hint == "their reasons: one rank; two ranks"
        assert caught.value.exit_code is ExitCode.USAGE


def test_a_knob_that_no_installed_plugin_applies(bench: Any) -> None:
    knobs = bench.catalog.all_knobs
    knobs["kernel.fast_math"] = evolve(knobs["execution.prefix_cache"], name="kernel.fast_math")
    places: dict[str, Any] = {
        "axes.kernel.fast_math": {"axes": {"kernel.fast_math": [True]}},
        "baseline.kernel.fast_math": {"baseline": {"kernel.fast_math": True}},
        "fixed.kernel.fast_math": {"fixed": {"kernel.fast_math": True}},
        "linked.d.kernel.fast_math": {"linked": {"d": {"kernel.fast_math": [True]}}},
        "cases.0.set.kernel.fast_math": {"cases": [{"name": "c", "set": {"kernel.fast_math": True}}]},
    }
    for place, changes in places.items():
        with pytest.raises(PluginError, match=r"no installed plugin applies kernel\.fast_math") as caught:
            bench.experiment(**changes)
        assert caught.value.exit_code is ExitCode.PLUGIN
        (fault,) = caught.value.faults
        assert fault.where.endswith(f" {place}") and "xcfg scorers list" in fault.hint


def test_a_slice_that_selects_nothing(bench: Any) -> None:
    cases = [{"name": "a", "set": {"rollout.dtype": "fp32"}}]
    slices = {"class": {"source_classes": ["representation"]}, "axis": {"axes": ["batch.size"]}}
    rule = {"axes": {"batch.size": [1]}, "cases": cases, "slices": slices}
    with pytest.raises(NothingSelected, match="no case is left of 3") as caught:
        bench.plan(bench.experiment(**rule), slice_name="class")
    fault = caught.value.faults[0]
    assert (fault.where, fault.hint) == ("--slice class", "`xcfg plan` without them lists the cases")
    assert caught.value.exit_code is ExitCode.NOTHING

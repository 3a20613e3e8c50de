"""Build-time knobs choose a kernel's build; what no build offers is told while planning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from xcfg.model.kernel import KernelBuild
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.scorer import KernelBackendDescriptor, Role

FAST, PATH = "kernel.fast_math", "kernel.sm90_path"


def build(number: int, **knobs: bool) -> KernelBuild:
    named = {f"kernel.{name}": value for name, value in knobs.items()}
    return KernelBuild(knobs=named, artifact=f"pack:{number}.so", fingerprint=f"{number:064x}")


def backend(name: str, *builds: KernelBuild) -> KernelBackendDescriptor:
    roles = (Role.ROLLOUT, Role.TRAINING)
    return KernelBackendDescriptor(
        operator="selected_logprob", id=name, summary=name, target="x:Y", roles=roles, builds=builds
    )


@pytest.fixture
def built(bench: Any) -> Any:
    """The bench with both knobs and three kernels in builds."""
    for name in (FAST, PATH):
        bench.catalog.all_knobs[name] = Knob(
            name=name,
            summary=name,
            source_class=SourceClass.ARITHMETIC,
            lifecycle=Lifecycle.BUILD,
            targets=Target.KERNEL,
            domain=Domain(kind=Kind.BOOL, optional=True),
        )
    for made in (
        backend("twice", build(1, fast_math=False), build(2, fast_math=True)),
        backend("once", build(3, fast_math=False)),
        backend("corner", build(4, fast_math=False, sm90_path=True), build(5, fast_math=True, sm90_path=False)),
    ):
        bench.catalog.all_backends[made.operator, made.id] = made
    return bench


def cases(built: Any, kernel: str, axes: Mapping[str, Any], base: Mapping[str, Any] = {}, **more: Any) -> list[Any]:
    baseline = {"logp.backend": kernel, **base}
    return list(built.plan(built.experiment(baseline=baseline, axes=axes, **more)).cases)


def test_a_side_carries_the_value_that_chooses_its_build(built: Any) -> None:
    plain, strict, fast = cases(built, "twice", {FAST: [False, True]}, rollout={"scorer": "plain"})
    assert [case.rejected for case in (plain, strict, fast)] == [None] * 3
    assert FAST not in plain.rollout.knobs and FAST not in plain.training.knobs
    assert fast.changed == (FAST,)
    for side in (fast.rollout, fast.training):
        assert side.knobs[FAST] is True and FAST not in side.inapplicable
    assert len({side.digest() for case in (plain, strict, fast) for side in (case.rollout, case.training)}) == 6


def test_a_scorer_that_takes_no_kernel_has_no_use_for_a_build(built: Any) -> None:
    plain, fast = cases(built, "twice", {FAST: [True]})
    assert fast.rejected is None and fast.training.knobs[FAST] is True
    assert FAST not in fast.rollout.knobs and fast.rollout.digest() == plain.rollout.digest()
    why = "scorer 'eng' lets no kernel take over: eng computes its logprobs itself"
    assert fast.rollout.inapplicable[FAST] == why


def test_a_value_without_a_build_names_those_there_are(built: Any) -> None:
    strict, fast = cases(built, "once", {FAST: [True]})
    assert strict.rejected is None and fast.rejected.kind == "unsupported"
    said = "has no build with kernel.fast_math=true but only with kernel.fast_math=false"
    assert fast.rejected.reason == f"backend 'once' of selected_logprob {said}"


def test_a_combination_without_a_build_is_unsupported(built: Any) -> None:
    found = cases(built, "corner", {FAST: [False, True], PATH: [False, True]}, mode="product")
    ran = [(case.axes[FAST], case.axes[PATH]) for case in found if case.rejected is None]
    assert ran == [(None, None), (False, True), (True, False)]
    refused = next(case.rejected.reason for case in found if case.axes == {FAST: True, PATH: True})
    assert "no build with kernel.fast_math=true, kernel.sm90_path=true but only with " in refused
    assert refused.endswith("=false, kernel.sm90_path=true; kernel.fast_math=true, kernel.sm90_path=false")


@pytest.mark.parametrize(("kernel", "knob"), [("production", FAST), ("twice", PATH)])
def test_a_kernel_whose_builds_do_not_differ_in_it_cannot_have_a_value(built: Any, kernel: str, knob: str) -> None:
    plain, asked = cases(built, kernel, {knob: [False]})
    assert plain.rejected is None and asked.rejected.kind == "unsupported"
    assert asked.rejected.reason.startswith(f"{knob} has no meaning on any side: ")
    assert f"backend {kernel!r} of selected_logprob has no builds that differ in it" in asked.rejected.reason
    assert asked.id != plain.id


def test_a_value_for_the_baselines_kernel_is_not_asked_of_the_one_in_its_place(built: Any) -> None:
    twice, production, once = cases(built, "twice", {"logp.backend": ["production", "once"]}, {FAST: True})
    assert twice.rejected is None and production.rejected is None
    assert production.changed == ("logp.backend",)
    assert FAST not in production.training.knobs and "differ in it" in production.training.inapplicable[FAST]
    assert "no build with kernel.fast_math=true" in once.rejected.reason


def test_a_case_that_asks_it_of_a_kernel_in_one_build_is_unsupported(built: Any) -> None:
    found = cases(built, "production", {FAST: [True], "logp.backend": ["production", "twice"]}, mode="product")
    asked = {case.axes["logp.backend"]: case.rejected for case in found if case.axes[FAST]}
    assert asked["twice"] is None and asked["production"].kind == "unsupported"


def test_one_side_may_have_the_build_and_the_other_another_kernel(built: Any) -> None:
    operators = {"selected_logprob": {"rollout": "twice", "training": "reference"}}
    experiment = built.experiment(rollout={"scorer": "plain"}, operators=operators, axes={FAST: [True]})
    _, fast = built.plan(experiment).cases
    assert fast.rejected is None
    assert fast.rollout.knobs[FAST] is True and FAST not in fast.training.knobs
    assert "'reference'" in fast.training.inapplicable[FAST]


def test_a_knob_in_which_no_installed_kernel_differs_is_a_plugin_fault(built: Any) -> None:
    kernels = built.catalog.all_backends
    for key in [key for key in kernels if key[1] == "corner"]:
        del kernels[key]
    [found] = built.faults(built.minimal(axes={PATH: [True]}))
    assert (
        found.startswith("exp.json:") and "no installed kernel comes in builds that differ in kernel.sm90_path" in found
    )
    assert built.load(built.minimal(axes={FAST: [True]}))


def test_profiles_align_it_where_the_kernel_has_builds(built: Any) -> None:
    aligned = {FAST: {FAST: False}}
    for kernel, value in (("twice", False), ("production", None)):
        experiment = built.experiment(baseline={"logp.backend": kernel}, aligned=aligned)
        last = built.plan(experiment, profiles=["A0"]).cases[-1]
        assert last.training.knobs.get(FAST) is value

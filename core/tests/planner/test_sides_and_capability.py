from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from xcfg.errors import PluginError, XcfgError
from xcfg.exitcodes import ExitCode
from xcfg.model.case import Rejection
from xcfg.model.experiment import OperatorSides
from xcfg.model.kernel import OperatorChoice
from xcfg.planner.isolation import check_isolated, differences


def test_a_side_carries_what_its_scorer_can_apply(bench: Any) -> None:
    case = bench.plan(bench.experiment(baseline={"layout.padding_side": "left"})).cases[0]
    assert dict(case.rollout.knobs) == {
        "rollout.dtype": "bfloat16",
        "rollout.tensor_parallel_size": 1,
        "batch.size": 8,
        "execution.prefix_cache": False,
        "sampling.temperature": 1.0,
        "eng.seed": None,
    }
    assert dict(case.rollout.inapplicable) == {
        "layout.padding_side": "eng packs rows without padding",
        "logp.backend": "eng computes its logprobs itself",
    }
    assert dict(case.rollout.operators) == {}
    assert dict(case.training.knobs) == {
        "training.compute_dtype": "bfloat16",
        "training.sharding": "unsharded",
        "batch.size": 8,
        "layout.padding_side": "left",
        "logp.backend": "production",
    }
    assert case.training.operators["selected_logprob"] == OperatorChoice(backend="production")
    assert case.rejected is None


def test_a_knob_without_meaning_on_one_side_leaves_that_side_alone(bench: Any) -> None:
    axes = {"layout.padding_side": ["right", "left"], "logp.backend": ["production", "reference"]}
    plan = bench.plan(bench.experiment(axes=axes))
    assert len(plan.cases) == 3
    assert len({case.rollout.digest() for case in plan.cases}) == 1
    assert len({case.training.digest() for case in plan.cases}) == 3
    assert plan.cases[2].training.operators["selected_logprob"].backend == "reference"
    assert plan.cases[2].changed == ("logp.backend",)


def rejection(bench: Any, **changes: Any) -> Rejection:
    plan = bench.plan(bench.experiment(**changes))
    assert plan.cases[-1].rejected is not None
    assert len({case.id for case in plan.cases}) == len(plan.cases)
    return plan.cases[-1].rejected


def test_a_knob_the_scorer_does_not_know_is_unsupported(bench: Any) -> None:
    found = rejection(bench, rollout={"scorer": "plain"}, axes={"eng.seed": [3]})
    assert found.kind == "unsupported"
    assert found.reason == "scorer 'plain' cannot apply eng.seed=3: it does not know the knob"


def test_a_value_the_scorer_cannot_apply_is_unsupported(bench: Any) -> None:
    found = rejection(bench, rollout={"scorer": "plain"}, axes={"rollout.tensor_parallel_size": [2]})
    assert found.kind == "unsupported"
    assert found.reason == (
        "scorer 'plain' cannot apply rollout.tensor_parallel_size=2 but only 1 (plain runs in one process)"
    )


def test_true_is_not_one(bench: Any) -> None:
    found = rejection(bench, rollout={"scorer": "plain"}, axes={"execution.prefix_cache": [True]})
    assert found.reason.endswith("execution.prefix_cache=true but only false")


def test_a_scorer_in_the_wrong_role_is_unsupported(bench: Any) -> None:
    found = rejection(bench, cases=[{"name": "swapped", "rollout": {"scorer": "trainer"}}])
    assert found.kind == "unsupported"
    assert "scorer 'trainer' plays training, not rollout" in found.reason


def test_a_knob_without_meaning_anywhere_is_unsupported(bench: Any) -> None:
    def ragged(knob: str, scorer: str) -> Any:
        found = usual(knob, scorer)
        return evolve(found, inapplicable="no padding here") if found and knob == "layout.padding_side" else found

    usual = bench.catalog.materializer
    bench.catalog.materializer = ragged
    found = rejection(bench, axes={"layout.padding_side": ["left"]})
    assert found == Rejection(
        kind="unsupported", reason="layout.padding_side has no meaning on any side: no padding here"
    )
    assert bench.plan().cases[0].rejected is None


def test_what_the_baseline_gives_its_own_engine_is_not_asked_of_another(bench: Any) -> None:
    cases = [
        {"name": "plain", "rollout": {"scorer": "plain"}},
        {"name": "asked", "rollout": {"scorer": "plain"}, "set": {"eng.seed": 4}},
    ]
    plan = bench.plan(bench.experiment(baseline={"eng.seed": 3}, cases=cases))
    kept, plain, asked = plan.cases
    assert kept.rollout.knobs["eng.seed"] == 3
    assert plain.rejected is None
    assert "eng.seed" not in plain.rollout.knobs
    assert (
        plain.rollout.inapplicable["eng.seed"] == "eng.seed is a setting of eng, and scorer plain takes its place here"
    )
    assert asked.rejected is not None and asked.rejected.kind == "unsupported"


def test_a_default_the_scorer_cannot_apply_says_so(bench: Any) -> None:
    knobs = bench.catalog.all_knobs
    knobs["execution.prefix_cache"] = evolve(knobs["execution.prefix_cache"], default=True)
    found = bench.plan(bench.experiment(rollout={"scorer": "plain"})).cases[0].rejected
    assert found.reason == "scorer 'plain' cannot apply execution.prefix_cache=true (its default) but only false"


def test_operators_choose_per_side_with_options(bench: Any) -> None:
    operators = {"selected_logprob": {"rollout": "reference", "training": {"backend": "late", "options": {"block": 2}}}}
    case = bench.plan(bench.experiment(rollout={"scorer": "plain"}, operators=operators)).cases[0]
    assert case.rejected is None
    assert case.rollout.knobs["logp.backend"] == "reference"
    assert case.rollout.operators["selected_logprob"] == OperatorChoice(backend="reference")
    assert case.training.knobs["logp.backend"] == "late"
    assert case.training.operators["selected_logprob"] == OperatorChoice(backend="late", options={"block": 2})


def test_an_operator_for_a_scorer_that_takes_none_is_unsupported(bench: Any) -> None:
    found = bench.plan(bench.experiment(operators={"selected_logprob": {"rollout": "reference"}})).cases[0].rejected
    assert found.kind == "unsupported"
    assert found.reason == ("scorer 'eng' takes no backend for selected_logprob: eng computes its logprobs itself")


def test_an_operator_for_a_scorer_that_hosts_it(bench: Any) -> None:
    scorers = bench.catalog.all_scorers
    scorers["eng"] = evolve(scorers["eng"], operators=("selected_logprob",))
    sides = {"rollout": {"backend": "reference", "options": {"block": 2}}, "training": "late"}
    case = bench.plan(bench.experiment(operators={"selected_logprob": sides})).cases[0]
    assert case.rejected is None
    assert case.rollout.operators["selected_logprob"] == OperatorChoice(backend="reference", options={"block": 2})
    assert "logp.backend" not in case.rollout.knobs
    plain = bench.plan(bench.experiment(baseline={"logp.backend": "reference"})).cases[0]
    assert not plain.rollout.operators  # its own logprobs, unless operators say otherwise


def test_a_backend_that_does_not_serve_a_side_is_unsupported(bench: Any) -> None:
    found = rejection(bench, rollout={"scorer": "plain"}, axes={"logp.backend": ["late"]})
    assert found.reason == "backend 'late' of selected_logprob does not serve the rollout side"


def test_an_unknown_backend_is_a_plugin_error(bench: Any) -> None:
    sides = OperatorSides(training=OperatorChoice(backend="gone"))
    with pytest.raises(PluginError):
        bench.plan(evolve(bench.experiment(), operators={"selected_logprob": sides}))


CONSTRAINT = {
    "reason": "fp32 only with fp32",
    "when": {"rollout.dtype": ["fp32"]},
    "require": {"training.compute_dtype": ["fp32"]},
}


def test_constraints_see_every_value_of_a_case(bench: Any) -> None:
    axes = {"rollout.dtype": ["bf16", "fp32"], "training.compute_dtype": ["bf16", "fp32"]}
    plan = bench.plan(bench.experiment(axes=axes, mode="product", constraints=[CONSTRAINT]))
    rejected = {tuple(case.axes.values()): case.rejected for case in plan.cases}
    assert rejected.pop(("float32", "bfloat16")) == Rejection(kind="constraint", reason="fp32 only with fp32")
    assert set(rejected.values()) == {None}
    assert len(plan.runnable) == 3


def test_a_constraint_comes_before_a_capability(bench: Any) -> None:
    rule = {"reason": "never", "when": {"rollout.tensor_parallel_size": [2]}, "require": {"batch.size": [1]}}
    axes = {"rollout.tensor_parallel_size": [2]}
    assert rejection(bench, rollout={"scorer": "plain"}, axes=axes, constraints=[rule]).kind == "constraint"


def test_vetoes_are_asked_about_cases_that_could_run(bench: Any) -> None:
    asked: list[tuple[str, ...]] = []

    def veto(case: Any, baseline: Any) -> Rejection | None:
        assert baseline.name == "baseline"
        asked.append(case.changed)
        return Rejection(kind="veto", reason="two ranks needed") if "training.sharding" in case.changed else None

    bench.catalog.veto = veto
    axes = {"training.sharding": ["hybrid"], "rollout.tensor_parallel_size": [2]}
    plan = bench.plan(bench.experiment(rollout={"scorer": "plain"}, axes=axes))
    assert [case.rejected and case.rejected.kind for case in plan.cases] == [None, "veto", "unsupported"]
    assert asked == [(), ("training.sharding",)]


def test_isolation_is_proven_on_the_built_sides(bench: Any) -> None:
    baseline, case = bench.plan(bench.experiment(axes={"logp.backend": ["reference"]})).cases
    assert differences(case, baseline) == {"logp.backend"}
    check_isolated(case, baseline, "logp.backend")
    drifted = evolve(case, rollout=evolve(case.rollout, knobs={**case.rollout.knobs, "batch.size": 1}))
    with pytest.raises(XcfgError, match=r"also changes batch\.size") as caught:
        check_isolated(drifted, baseline, "logp.backend")
    assert caught.value.exit_code is ExitCode.INTERNAL
    moved = evolve(case, training=evolve(case.training, scorer="plain", operators={}))
    assert differences(moved, baseline) == {"logp.backend", "training.scorer"}

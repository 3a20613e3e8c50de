"""An in-memory catalogue of three scorers and ten knobs, and files of an experiment to plan with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from xcfg.builtin.profiles import PROFILES
from xcfg.errors import InvalidInput, PluginError
from xcfg.model.case import Case, Rejection
from xcfg.model.codec import unknown
from xcfg.model.experiment import Experiment, ProfileSpec, SliceSpec
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.plan import Plan
from xcfg.model.scorer import KernelBackendDescriptor, Launch, MaterializerDescriptor, Role, ScorerDescriptor
from xcfg.model.tolerance import ContractRef, ToleranceContract
from xcfg.planner.build import build_plan
from xcfg.planner.load import Loaded, load_experiment

ALIASES = {"bf16": "bfloat16", "fp32": "float32", "fp16": "float16"}
DTYPES = ("float32", "float16", "bfloat16")


def knob(name: str, cls: SourceClass, targets: Target, domain: Domain, default: Any) -> Knob:
    return Knob(
        name=name,
        summary=f"the {name}",
        source_class=cls,
        lifecycle=Lifecycle.ENGINE,
        targets=targets,
        domain=domain,
        default=default,
    )


KNOBS = (
    knob(
        "rollout.dtype",
        SourceClass.ARITHMETIC,
        Target.ROLLOUT,
        Domain(kind=Kind.STR, values=DTYPES, aliases=ALIASES),
        "bfloat16",
    ),
    knob(
        "training.compute_dtype",
        SourceClass.ARITHMETIC,
        Target.TRAINING,
        Domain(kind=Kind.STR, values=DTYPES, aliases=ALIASES),
        "bfloat16",
    ),
    knob("rollout.tensor_parallel_size", SourceClass.REDUCTION, Target.ROLLOUT, Domain(kind=Kind.INT, minimum=1), 1),
    knob(
        "training.sharding",
        SourceClass.REDUCTION,
        Target.TRAINING,
        Domain(kind=Kind.STR, values=("unsharded", "full_shard", "hybrid")),
        "unsharded",
    ),
    knob("batch.size", SourceClass.REDUCTION, Target.BOTH, Domain(kind=Kind.INT, minimum=1, maximum=64), 8),
    knob(
        "layout.padding_side",
        SourceClass.LOGICAL,
        Target.BOTH,
        Domain(kind=Kind.STR, values=("left", "right")),
        "right",
    ),
    knob("execution.prefix_cache", SourceClass.EXECUTION, Target.ROLLOUT, Domain(kind=Kind.BOOL), False),
    knob("sampling.temperature", SourceClass.LOGICAL, Target.ROLLOUT, Domain(kind=Kind.FLOAT, minimum=0.01), 1.0),
    knob("logp.backend", SourceClass.ARITHMETIC, Target.KERNEL, Domain(kind=Kind.STR), "production"),
    knob("eng.seed", SourceClass.EXECUTION, Target.ROLLOUT, Domain(kind=Kind.INT, optional=True), None),
)

ENG = ("rollout.dtype", "rollout.tensor_parallel_size", "batch.size", "execution.prefix_cache", "sampling.temperature")
TRAINER = ("training.compute_dtype", "training.sharding", "batch.size", "layout.padding_side", "logp.backend")


def how(scorer: str, name: str, **rest: Any) -> MaterializerDescriptor:
    return MaterializerDescriptor(knob=name, scorer=scorer, lifecycle=Lifecycle.ENGINE, **rest)


MATERIALIZERS = (
    *(how("eng", name) for name in (*ENG, "eng.seed")),
    how("eng", "layout.padding_side", inapplicable="eng packs rows without padding"),
    how("eng", "logp.backend", inapplicable="eng computes its logprobs itself"),
    *(how("trainer", name) for name in TRAINER),
    *(how("plain", name) for name in ("rollout.dtype", "batch.size", "layout.padding_side", "logp.backend")),
    *(how("plain", name) for name in ("training.compute_dtype", "sampling.temperature")),
    how("plain", "rollout.tensor_parallel_size", values=(1,), reason="plain runs in one process"),
    how("plain", "training.sharding", values=("unsharded",)),
    how("plain", "execution.prefix_cache", values=(False,)),
)

SCORERS = (
    ScorerDescriptor(id="eng", summary="a ragged engine", target="x:Y", roles=(Role.ROLLOUT,), samples=True),
    ScorerDescriptor(
        id="trainer", summary="a sharded trainer", target="x:Y", roles=(Role.TRAINING,), launch=Launch.ELASTIC
    ),
    ScorerDescriptor(id="plain", summary="one process", target="x:Y", roles=(Role.ROLLOUT, Role.TRAINING)),
)

BOTH = (Role.ROLLOUT, Role.TRAINING)
BACKENDS = tuple(
    KernelBackendDescriptor(operator="selected_logprob", id=name, summary=name, target="x:Y", roles=roles)
    for name, roles in (("production", BOTH), ("reference", BOTH), ("late", (Role.TRAINING,)))
)

CONTRACT = ToleranceContract(
    ref=ContractRef(id="ws1", version="v", digest="d" * 64),
    clip_interval=(0.8, 1.2),
    max_abs_dlogp={"float32": 1e-5},
    approx_kl0={},
    clipfrac0={},
)


class MemoryCatalog:
    """What a registry offers the planner; ``veto`` stands in for the plugins' ``xcfg_reject_case``."""

    def __init__(self) -> None:
        self.veto: Callable[[Case, Case], Rejection | None] = lambda case, baseline: None
        self.all_knobs: dict[str, Knob] = {item.name: item for item in KNOBS}
        self.all_scorers = {item.id: item for item in SCORERS}
        self.all_backends = {(item.operator, item.id): item for item in BACKENDS}
        self.contract_roots: list[Path] = []
        self.all_profiles = {item.id: item.profile for item in PROFILES if item.profile is not None}
        self.all_slices: dict[str, SliceSpec] = {}

    def knobs(self) -> Mapping[str, Knob]:
        return self.all_knobs

    def knob(self, name: str) -> Knob:
        if name not in self.all_knobs:
            raise InvalidInput(unknown("knob", name, list(self.all_knobs)))
        return self.all_knobs[name]

    def scorers(self) -> Mapping[str, ScorerDescriptor]:
        return self.all_scorers

    def scorer(self, scorer_id: str) -> ScorerDescriptor:
        found = self.scorers()
        if scorer_id not in found:
            raise PluginError(unknown("scorer", scorer_id, list(found)), hint="python -m pip install it")
        return found[scorer_id]

    def materializer(self, knob: str, scorer: str) -> MaterializerDescriptor | None:
        return next((item for item in MATERIALIZERS if (item.knob, item.scorer) == (knob, scorer)), None)

    def backend(self, operator: str, backend_id: str) -> KernelBackendDescriptor:
        if (operator, backend_id) not in self.all_backends:
            raise PluginError(unknown("backend", backend_id, [name for _, name in self.all_backends]))
        return self.all_backends[operator, backend_id]

    def backends(self) -> Mapping[tuple[str, str], KernelBackendDescriptor]:
        return self.all_backends

    def profiles(self) -> Mapping[str, ProfileSpec]:
        return self.all_profiles

    def profile(self, profile_id: str) -> ProfileSpec:
        if profile_id not in self.all_profiles:
            raise InvalidInput(unknown("profile", profile_id, list(self.all_profiles)))
        return self.all_profiles[profile_id]

    def slices(self) -> Mapping[str, SliceSpec]:
        return self.all_slices

    def slice(self, slice_id: str) -> SliceSpec:
        if slice_id not in self.all_slices:
            raise InvalidInput(unknown("slice", slice_id, list(self.all_slices)))
        return self.all_slices[slice_id]

    def owner(self, kind: str, name: str) -> str:
        return "xcfg"

    def contract(self, id_or_path: str, *, root: Path) -> ToleranceContract:
        self.contract_roots.append(root)
        if id_or_path != "ws1":
            raise PluginError(unknown("contract", id_or_path, ["ws1"]))
        return CONTRACT

    def reject_case(self, case: Case, baseline: Case) -> Rejection | None:
        return self.veto(case, baseline)


class Bench:
    """A folder with a checkpoint and prompts, in which experiments are written, loaded and planned."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.catalog = MemoryCatalog()
        model = root / "model"
        model.mkdir()
        (model / "config.json").write_text('{"model_type": "x"}')
        (root / "prompts.jsonl").write_text('{"id": "p0", "text": "hello"}\n')

    def minimal(self, **changes: Any) -> dict[str, Any]:
        """The smallest experiment, as plain data, with top-level ``changes``."""
        return {
            "schema": "xcfg.experiment/1",
            "name": "small",
            "checkpoint": {"path": "model"},
            "rollout": {"scorer": "eng"},
            "training": {"scorer": "trainer"},
            "tokens": {"sample": {"prompts": "prompts.jsonl"}},
            **changes,
        }

    def write(self, content: str | dict[str, Any], name: str = "exp.json") -> Path:
        path = self.root / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def load(self, content: str | dict[str, Any], *overrides: str, name: str = "exp.json") -> Loaded:
        return load_experiment(self.write(content, name), overrides, registry=self.catalog)

    def experiment(self, **changes: Any) -> Experiment:
        return self.load(self.minimal(**changes)).experiment

    def plan(self, experiment: Experiment | None = None, **options: Any) -> Plan:
        made = experiment if experiment is not None else self.experiment()
        return build_plan(made, root=self.root, registry=self.catalog, **options)

    def faults(self, content: str | dict[str, Any], *overrides: str, name: str = "exp.json") -> list[str]:
        """The faults of an experiment that must not load, without the folder in front."""
        with pytest.raises((InvalidInput, PluginError)) as caught:
            self.load(content, *overrides, name=name)
        return [str(fault).replace(f"{self.root}/", "") for fault in caught.value.faults]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def names() -> Callable[[Plan], Sequence[tuple[str, ...]]]:
    """What each case of a plan changes, or its name."""
    return lambda plan: [(case.name,) if case.name else case.changed for case in plan.cases]

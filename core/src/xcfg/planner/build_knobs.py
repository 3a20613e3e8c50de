"""Build-time knobs: they choose among the prebuilt artifacts of the kernels that a side binds."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from attrs import field, frozen

from xcfg.model.json import Json
from xcfg.model.kernel import KernelBuild, OperatorChoice, fitting_build
from xcfg.model.knob import Knob, Lifecycle, Target
from xcfg.model.scorer import KernelBackendDescriptor
from xcfg.planner.assignment import same
from xcfg.planner.catalog import Catalog


@frozen(kw_only=True)
class Asked:
    """The build-time values of one side.

    ``values`` are those that ask for something, ``own`` the names that the case sets itself. ``replaced`` is True where
    the case binds another kernel than the baseline, whose builds the other values were meant for. ``kernelless`` says
    why the scorer lets no kernel take over.
    """

    values: Mapping[str, Json]
    own: Collection[str]
    replaced: bool
    kernelless: str


@frozen(kw_only=True)
class Chosen:
    """What they come to: ``knobs`` and ``inapplicable`` enter the configuration, the rest is as in a side."""

    knobs: Mapping[str, Json] = field(factory=dict)
    inapplicable: Mapping[str, str] = field(factory=dict)
    idle: Mapping[str, str] = field(factory=dict)
    unsupported: tuple[tuple[str, str], ...] = ()


def chooses_build(knob: Knob) -> bool:
    """Whether no scorer applies the knob, but the choice of a kernel's build."""
    return knob.targets is Target.KERNEL and knob.lifecycle is Lifecycle.BUILD


def names_knob(backend: KernelBackendDescriptor, name: str) -> bool:
    """Whether builds of a backend differ in a knob."""
    return any(name in build.knobs for build in backend.builds)


def choose(asked: Asked, operators: Mapping[str, OperatorChoice], catalog: Catalog) -> Chosen:
    """Place the values of one side, whose kernels are ``operators``."""
    bound = [catalog.backend(operator, choice.backend) for operator, choice in operators.items()]
    knobs = {name: value for name, value in asked.values.items() if any(names_knob(item, name) for item in bound)}
    without = {name: _without(bound, asked.kernelless) for name in asked.values if name not in knobs}
    refused = [said for backend in bound if (said := _refusal(backend, knobs)) is not None]
    return Chosen(
        knobs=knobs,
        inapplicable=without,
        idle={name: said for name, said in without.items() if name in asked.own or not asked.replaced},
        unsupported=tuple(refused),
    )


def _without(bound: Collection[KernelBackendDescriptor], kernelless: str) -> str:
    names = " and ".join(f"backend {item.id!r} of {item.operator}" for item in bound)
    return f"{names} has no builds that differ in it" if names else kernelless


def _refusal(backend: KernelBackendDescriptor, knobs: Mapping[str, Json]) -> tuple[str, str] | None:
    """The knob at fault and the sentence, where no build of the backend fits."""
    asked = {name: value for name, value in knobs.items() if names_knob(backend, name)}
    if not asked or fitting_build(backend.builds, asked) is not None:
        return None
    strange = [name for name, value in asked.items() if not _built(backend.builds, name, value)]
    there = "; ".join(_shown(build.knobs) for build in backend.builds)
    said = f"backend {backend.id!r} of {backend.operator} has no build with {_shown(asked)} but only with {there}"
    return (strange or list(asked))[0], said


def _built(builds: Collection[KernelBuild], name: str, value: Json) -> bool:
    return any(name in build.knobs and same(build.knobs[name], value) for build in builds)


def _shown(values: Mapping[str, Json]) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in values.items())

"""What a third party's plugin adds to planning: knobs that find their profile, profiles and slices of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from xcfg.errors import InvalidInput, NothingSelected
from xcfg.model.case import Case
from xcfg.planner.build import build_plan
from xcfg.planner.load import load_experiment
from xcfg.plugin import inventory as inventory_module
from xcfg.plugin.registry import Registry, load_registry
from xcfg.testing.distributions import write_distribution

PLUGIN = """
    from xcfg.model.experiment import ProfileSpec, SliceSpec
    from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
    from xcfg.model.profile import ProfileDescriptor
    from xcfg.model.scorer import MaterializerDescriptor
    from xcfg.plugin import hookimpl

    CLASSES = {
        "norm": SourceClass.ARITHMETIC,
        "split": SourceClass.REDUCTION,
        "store": SourceClass.REPRESENTATION,
        "route": SourceClass.EXECUTION,
    }

    @hookimpl
    def xcfg_knobs():
        return [
            Knob(
                name=f"acme.{name}", summary="s", source_class=cls, lifecycle=Lifecycle.ENGINE, targets=Target.ROLLOUT,
                domain=Domain(kind=Kind.INT), default=0, aligned={f"acme.{name}": 7},
            )
            for name, cls in CLASSES.items()
        ]

    @hookimpl
    def xcfg_materializers():
        return [
            MaterializerDescriptor(
                knob=f"acme.{name}", scorer="fake", lifecycle=Lifecycle.ENGINE, target="acme.materialize:Set"
            )
            for name in CLASSES
        ]

    @hookimpl
    def xcfg_profiles():
        return [
            ProfileDescriptor(id="E1", profile=ProfileSpec(summary="Route alone", differ=[[SourceClass.EXECUTION]])),
            ProfileDescriptor(id="sums", slice=SliceSpec(source_classes=["reduction"])),
            ProfileDescriptor(id="elsewhere", slice=SliceSpec(axes=["acme.store"])),
        ]
"""
KNOBS = ("acme.norm", "acme.split", "acme.store", "acme.route")
LEFT = {
    "A0": set(),
    "A1": {"acme.norm"},
    "A2": {"acme.split"},
    "A3": {"acme.store"},
    "A4 arithmetic+reduction": {"acme.norm", "acme.split"},
    "A4 arithmetic+representation": {"acme.norm", "acme.store"},
    "A4 reduction+representation": {"acme.split", "acme.store"},
    "baseline": set(KNOBS),
}
"""The knobs each case leaves at production, by the classes of the profiles; A5 is the baseline."""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """Core and one plugin of a third party, whatever else is installed."""
    site = tmp_path / "site"
    module = write_distribution(site, "xcfg-acme", PLUGIN)
    monkeypatch.syspath_prepend(str(site))
    core = metadata.distribution("xcfg")

    def visible(group: str) -> list[metadata.EntryPoint]:
        found = [*metadata.distributions(path=[str(site)]), core]
        return [entry for distribution in found for entry in distribution.entry_points if entry.group == group]

    monkeypatch.setattr(inventory_module, "entry_points", visible)
    found = load_registry(allow_fake=True)
    assert found.failures == {}
    yield found
    sys.modules.pop(module)


def content(bench: Any, **changes: Any) -> Path:
    made: Path = bench.write(bench.minimal(rollout={"scorer": "fake"}, training={"scorer": "fake"}, **changes))
    return made


def cases(path: Path, registry: Registry, **options: Any) -> tuple[Case, ...]:
    loaded = load_experiment(path, registry=registry)
    return build_plan(loaded.experiment, root=loaded.root, registry=registry, **options).cases


def left_at_production(case: Case) -> set[str]:
    """Of the plugin's knobs. The others have their aligned value, on the side itself."""
    found = {name for name in KNOBS if case.rollout.knobs[name] == 0}
    assert all(case.rollout.knobs[name] == 7 for name in set(KNOBS) - found)
    return found


def test_a_new_knob_is_in_the_profiles_of_its_class_and_aligned_in_the_others(bench: Any, registry: Registry) -> None:
    made = cases(content(bench), registry, profiles=["A0", "A1", "A2", "A3", "A4", "A5"])
    assert {case.name: left_at_production(case) for case in made} == LEFT


def test_a_profile_of_a_plugin_is_planned_like_cores(bench: Any, registry: Registry) -> None:
    (case,) = cases(content(bench), registry, profiles=["E1"])
    assert case.name == "E1" and left_at_production(case) == {"acme.route"}


def test_a_slice_of_a_plugin_selects_among_the_experiments_cases(bench: Any, registry: Registry) -> None:
    path = content(bench, axes={"acme.split": [1, 2], "acme.norm": [1]})
    assert [case.axes["acme.split"] for case in cases(path, registry, slice_name="sums")] == [1, 2]
    with pytest.raises(NothingSelected, match="no case is left of 4") as caught:
        cases(path, registry, slice_name="elsewhere")
    assert caught.value.faults[0].where == "--slice elsewhere"


def test_an_experiment_takes_other_names(bench: Any, registry: Registry) -> None:
    path = content(bench, profiles={"E1": {"differ": [[]]}}, slices={"sums": {"baseline": True}})
    with pytest.raises(InvalidInput) as caught:
        load_experiment(path, registry=registry)
    said = [f"{fault.where.split()[-1]}: {fault.message}" for fault in caught.value.faults]
    assert said == [
        "profiles.E1: 'E1' is a profile of xcfg-acme, take another name",
        "slices.sums: 'sums' is a slice of xcfg-acme, take another name",
    ]


def test_unknown_names_list_all_there_are(bench: Any, registry: Registry) -> None:
    path = content(bench, profiles={"own": {"differ": [[]]}})
    with pytest.raises(InvalidInput) as caught:
        cases(path, registry, profiles=["E2"])
    assert caught.value.faults[0].hint == "there are A0, A1, A2, A3, A4, A5, E1, own"
    with pytest.raises(InvalidInput, match="unknown slice 'sum', did you mean 'sums'") as caught:
        cases(path, registry, slice_name="sum")
    assert caught.value.faults[0].hint == "there are elsewhere, sums"

"""Profiles and slices of other distributions, found through their entry points."""

from __future__ import annotations

import pytest

from xcfg.errors import InvalidInput, PluginError
from xcfg.exitcodes import ExitCode
from xcfg.model.codec import dump_json
from xcfg.plugin.describe import describe, described_registry, read_description
from xcfg.plugin.inventory import PluginState
from xcfg.plugin.registry import load_registry


def source(*descriptors: str) -> str:
    return f"""
from xcfg.plugin import hookimpl
from xcfg.model.experiment import ProfileSpec, SliceSpec
from xcfg.model.knob import SourceClass
from xcfg.model.profile import ProfileDescriptor

def named(id, **what):
    return ProfileDescriptor(id=id, **what)

@hookimpl
def xcfg_profiles():
    return [{", ".join(descriptors)}]
"""


PROFILE = 'named("E1", profile=ProfileSpec(summary="s", differ=[[SourceClass.EXECUTION], []]))'
SLICE = 'named("topology", slice=SliceSpec(baseline=True, source_classes=["reduction"]))'
BROKEN = {
    "neither": ('named("x")', "'x' of xcfg_profiles must be exactly one of a profile and a slice"),
    "both": ('named("x", profile=ProfileSpec(differ=[[]]), slice=SliceSpec(baseline=True))', "exactly one of"),
    "no id": ('named(" ", profile=ProfileSpec(differ=[[]]))', "a profile or slice needs an id"),
    "no case": ('named("x", profile=ProfileSpec(differ=[]))', "profile 'x' has no case"),
    "a class": ('named("x", profile=ProfileSpec(differ=[["reductoin"]]))', "'reductoin', did you mean 'reduction'?"),
    "empty slice": ('named("x", slice=SliceSpec())', "slice 'x' selects nothing"),
    "a case": ('named("x", slice=SliceSpec(baseline=True, cases=["a"]))', "which belong to one experiment"),
    "a slice's class": ('named("x", slice=SliceSpec(source_classes=["logic"]))', "did you mean 'logical'?"),
    "twice": (f"{PROFILE}, {PROFILE}", "profile 'E1' is declared 2 times"),
    "a spec": ('ProfileSpec(summary="s", differ=[[]])', "must return ProfileDescriptor values, got ProfileSpec"),
}


def test_core_takes_the_same_way():
    registry = load_registry(plugins=False)
    assert list(registry.profiles()) == ["A0", "A1", "A2", "A3", "A4", "A5"]
    assert registry.owner("profile", "A2") == "xcfg"
    assert dict(registry.slices()) == {}


def test_profiles_and_slices_are_found_by_id_with_their_owner(install):
    install("xcfg-acme", source(PROFILE, SLICE))
    registry = load_registry()
    assert registry.failures == {}
    assert registry.profile("E1").differ == (("execution",), ())
    assert registry.slice("topology").source_classes == ("reduction",)
    assert registry.owner("profile", "E1") == registry.owner("slice", "topology") == "xcfg-acme"
    assert list(registry.profiles())[-1] == "E1"


def test_a_profile_and_a_slice_may_have_one_id(install):
    install("xcfg-acme", source(PROFILE, SLICE.replace("topology", "E1")))
    registry = load_registry()
    assert registry.failures == {}
    assert registry.profile("E1") and registry.slice("E1")


def test_they_survive_the_way_through_json(install):
    install("xcfg-acme", source(PROFILE, SLICE))
    registry = load_registry()
    read = read_description(dump_json(describe(registry)))
    assert read == describe(registry)
    other = described_registry(read)
    assert dict(other.profiles()) == dict(registry.profiles())
    assert dict(other.slices()) == dict(registry.slices())


@pytest.mark.parametrize(("descriptors", "text"), BROKEN.values(), ids=BROKEN.keys())
def test_a_wrong_one_fails_its_plugin_alone(install, descriptors, text):
    install("xcfg-bad", source(descriptors))
    registry = load_registry()
    assert list(registry.failures) == ["xcfg-bad"]
    assert text in registry.failures["xcfg-bad"]
    assert [info.state for info in registry.plugins if info.name == "bad"] == [PluginState.FAILED]
    assert "A5" in registry.profiles()


@pytest.mark.parametrize(("ask", "kind", "own"), [("profile", "profile", PROFILE), ("slice", "slice", SLICE)])
def test_an_id_of_two_distributions_names_both(install, ask, kind, own):
    name = {"profile": "E1", "slice": "topology"}[kind]
    install("xcfg-acme", source(own))
    install("xcfg-other", source(own))
    registry = load_registry()
    with pytest.raises(PluginError, match=f"{kind} '{name}' is registered by xcfg-acme and xcfg-other") as caught:
        getattr(registry, ask)(name)
    assert caught.value.faults[0].hint == "leave one out with -p no:acme or -p no:other"
    assert caught.value.exit_code is ExitCode.PLUGIN
    assert name not in {**registry.profiles(), **registry.slices()}


def test_an_unknown_id_is_the_users_to_mend(install):
    install("xcfg-acme", source(PROFILE.replace("E1", "topology")))
    registry = load_registry()
    with pytest.raises(InvalidInput, match="unknown profile 'topologi', did you mean 'topology'"):
        registry.profile("topologi")
    with pytest.raises(InvalidInput, match="unknown slice 'ci'"):
        registry.slice("ci")

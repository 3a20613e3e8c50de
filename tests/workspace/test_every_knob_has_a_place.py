"""Every knob of core is applied, limited with a reason, or without a meaning for each scorer that carries it."""

from __future__ import annotations

import importlib

import pytest

from xcfg.model.knob import Lifecycle
from xcfg.model.weights import WEIGHTS
from xcfg.plugin import Materializer
from xcfg.plugin.registry import load_registry

REGISTRY = load_registry()
CORE = load_registry(plugins=False).knobs()
SCORERS = ("vllm", "torch", "torch-tp", "fsdp", "fsdp1", "megatron", "deepspeed")
CARRIED = [
    (name, scorer)
    for name, knob in sorted(CORE.items())
    for scorer in SCORERS
    if any(knob.applies_to(role) for role in REGISTRY.scorer(scorer).roles) and knob.lifecycle is not Lifecycle.BUILD
]


def _sentence(text: str) -> bool:
    return len(text.split()) > 3


@pytest.mark.parametrize(("name", "scorer"), CARRIED)
def test_a_scorer_says_what_it_does_with_a_knob(name, scorer) -> None:
    knob, how = CORE[name], REGISTRY.materializer(name, scorer)
    assert how is not None, f"{scorer} neither applies {name} nor says that it has no meaning there"
    if how.inapplicable:
        assert _sentence(how.inapplicable)
        assert not how.target and not how.values
        return
    # the host applies the choice of a checkpoint by opening it: no scorer's code takes part
    assert bool(how.target) is (name != WEIGHTS) and how.lifecycle is knob.lifecycle
    for value in how.values:
        assert knob.domain.normalise(value) == value
    if how.values:
        assert _sentence(how.reason)


@pytest.mark.parametrize("scorer", SCORERS)
def test_what_a_default_asks_can_be_applied(scorer) -> None:
    beyond = {}
    for name, of in CARRIED:
        how = REGISTRY.materializer(name, of)
        default = CORE[name].default
        if of == scorer and default is not None and how.values and default not in how.values:
            beyond[name] = default
    assert beyond == {}


@pytest.mark.parametrize("name", sorted(name for name, knob in CORE.items() if knob.lifecycle is Lifecycle.BUILD))
def test_a_build_time_knob_is_the_kernels(name) -> None:
    assert all(REGISTRY.materializer(name, scorer) is None for scorer in SCORERS)


@pytest.mark.parametrize("scorer", SCORERS)
def test_what_is_applied_can_be_read_back(scorer) -> None:
    """A materializer's reader exists for each row; what it says is tested where the engine is."""
    pytest.importorskip("torch", reason="torch is not installed")
    rows = [item for item in REGISTRY.materializers(scorer).values() if item.target]
    (target,) = {item.target for item in rows}
    module, kind = target.split(":")
    materializer = getattr(importlib.import_module(module), kind)()
    assert isinstance(materializer, Materializer)
    readers = importlib.import_module("xcfg_vllm.readback").READERS if scorer == "vllm" else materializer.readers
    idle = {name for name, how in REGISTRY.materializers(scorer).items() if how.inapplicable}
    assert {item.knob for item in rows} == set(readers) - idle

"""What the plugins say was tried: every value of every knob is there, and what a plan refuses is said to be refused."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from xcfg.model.ids import canonical
from xcfg.plugin.compatibility import Outcome, compatibility_of
from xcfg.plugin.inventory import inventory
from xcfg.plugin.registry import load_registry

MATRIX = Path(__file__).parents[1] / "matrix"
sys.path.insert(0, str(MATRIX))
BENCHES = runpy.run_path(str(MATRIX / "benches.py"))
TRYING = runpy.run_path(str(MATRIX / "trying.py"))
KNOWN = {f"{item.scorer}-{item.role.value}": item for plugin in inventory() for item in compatibility_of(plugin)}
REGISTRY = load_registry()


@pytest.mark.parametrize("name", KNOWN)
def test_every_value_was_tried(name) -> None:
    wanted = list(TRYING["every_value"](BENCHES["BENCHES"][name], BENCHES["COUNTS"]))
    assert {(item.knob, canonical(item.value)) for item in KNOWN[name].tried} == {
        (knob, canonical(value)) for knob, value in wanted
    }


def test_every_scorer_has_a_bench() -> None:
    real = {f"{name}-{role.value}" for name, item in REGISTRY.scorers().items() if not item.fake for role in item.roles}
    assert set(BENCHES["BENCHES"]) == real
    assert set(KNOWN) <= real


@pytest.mark.parametrize("name", KNOWN)
def test_values_beyond_a_scorers_own_are_refused_with_its_reason(name) -> None:
    """Held against the descriptors, which the run did not write."""
    matrix, beyond = KNOWN[name], 0
    for knob, how in REGISTRY.materializers(matrix.scorer).items():
        for item in matrix.tried if how.values else ():
            if (
                item.knob == knob
                and item.value is not None
                and not any(item.value is v or item.value == v for v in how.values)
            ):
                beyond += 1
                assert item.outcome is Outcome.REFUSED and how.reason in item.reason
    assert beyond


@pytest.mark.parametrize("name", KNOWN)
def test_an_outcome_says_what_it_must(name) -> None:
    for item in KNOWN[name].tried:
        if item.outcome is Outcome.APPLIED:
            assert item.value is None or canonical(item.observed) == canonical(item.value), item
        else:
            assert len(item.reason.split()) > 3, item

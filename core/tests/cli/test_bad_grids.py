"""Grids that make no sense, through the command line: place, sentence, way out and exit code of each."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from xcfg.testing.distributions import write_distribution

ONE = {"reason": "one row", "require": {"batch.size": [1]}}
OTHER = {"reason": "many rows", "require": {"batch.size": [8]}}
NEVER = {"reason": "never", "when": {"rollout.dtype": ["bfloat16", "float32"]}, "require": {"batch.size": [2]}}

FAULTS: dict[str, tuple[dict[str, Any], list[str], int, str, str]] = {
    "constraints that contradict each other": (
        {"constraints": [ONE, OTHER]},
        [],
        2,
        "constraints.1.require.batch.size",
        "constraints 0 and 1 contradict each other: no value of batch.size satisfies both",
    ),
    "constraints that leave nothing": (
        {"constraints": [NEVER]},
        [],
        2,
        "constraints",
        "the constraints leave none of 4 cases, the baseline included",
    ),
    "an empty grid": ({"axes": {"batch.size": []}}, [], 2, "axes.batch.size", "an axis needs at least one value"),
    "an axis with one value": (
        {"axes": {"batch.size": [8]}},
        [],
        2,
        "axes.batch.size",
        "the axis varies nothing: batch.size=8 is the baseline's value",
    ),
    "a baseline value outside its domain": (
        {"baseline": {"batch.size": 0}},
        [],
        2,
        "baseline.batch.size",
        "batch.size: 0 is out of range: int >= 1",
    ),
    "a knob no installed plugin applies": (
        {"axes": {"lonely.size": [1]}},
        [],
        4,
        "axes.lonely.size",
        "no installed plugin applies lonely.size to a scorer",
    ),
    "a kernel knob no installed kernel has": (
        {"axes": {"kernel.fast_math": [True]}},
        [],
        4,
        "axes.kernel.fast_math",
        "no installed kernel comes in builds that differ in kernel.fast_math",
    ),
    "a threshold": (
        {"max_abs_dlogp": 1.0},
        [],
        2,
        "max_abs_dlogp",
        "'max_abs_dlogp' is refused: limits belong to the tolerance contract",
    ),
    "thresholds in the contract": (
        {"contract": {"max_abs_dlogp": {"float32": 1.0}}},
        [],
        2,
        "contract",
        "limits belong to the tolerance contract",
    ),
    "an override that hides an axis": (
        {},
        ["fixed.batch.size=2"],
        2,
        "override fixed.batch.size",
        "holding batch.size hides the axis 'batch.size': none of its values would be tried",
    ),
    "an override that leaves an axis nothing to vary": (
        {"axes": {"batch.size": [8, 1]}},
        ["axes.batch.size=[8]"],
        2,
        "override axes.batch.size",
        "the axis varies nothing",
    ),
    "an unknown profile": ({}, ["--profile", "A9"], 2, "--profile", "unknown profile 'A9'"),
    "a slice that selects nothing": (
        {"slices": {"none": {"source_classes": ["representation"]}}},
        ["--slice", "none"],
        5,
        "--slice none",
        "no case is left of 4",
    ),
    "a slice without a part": (
        {"slices": {"none": {}}},
        ["--slice", "none"],
        2,
        "slices.none",
        "the slice selects nothing",
    ),
    "ten million cases": (
        {"axes": {"batch.size": list(range(1, 4001)), "rollout.tensor_parallel_size": list(range(1, 2501))}},
        ["--mode", "product"],
        2,
        "axes",
        "10000000 cases, more than the 256 allowed",
    ),
    "too many cases": ({}, ["--max-cases", "3"], 2, "axes", "4 cases, more than the 3 allowed"),
}

LONELY = """
    from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
    from xcfg.plugin import hookimpl

    @hookimpl
    def xcfg_knobs():
        return [
            Knob(
                name="lonely.size", summary="s", source_class=SourceClass.EXECUTION, lifecycle=Lifecycle.ENGINE,
                targets=Target.ROLLOUT, domain=Domain(kind=Kind.INT), default=0,
            )
        ]
"""
"""A plugin with a knob and no materializer."""


@pytest.fixture(autouse=True)
def lonely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = write_distribution(tmp_path / "site", "xcfg-lonely", LONELY)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield
    sys.modules.pop(module, None)


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told_with_its_place_and_code(xcfg, write, name: str) -> None:
    changes, arguments, code, place, message = FAULTS[name]
    experiment = write(**{"slices": {}, **changes})
    out = experiment.parent / "out"
    for command in (["plan"], ["run", "--out", out]):
        done = xcfg(command[0], experiment, *command[1:], *arguments, "--allow-fake", "--json")
        assert (done.code, done.document["code"]) == (code, code)
        (fault,) = done.document["errors"]
        assert fault["where"].endswith(place)
        assert fault["message"].startswith(message)
        assert not out.exists()


@pytest.mark.parametrize(
    "name", ["an axis with one value", "an unknown profile", "a slice that selects nothing", "ten million cases"]
)
def test_it_says_what_to_do(xcfg, write, name: str) -> None:
    changes, arguments, code, _, message = FAULTS[name]
    done = xcfg("plan", write(**{"slices": {}, **changes}), *arguments, "--allow-fake")
    said = " ".join(done.err.split())
    hints = {
        "an axis with one value": "give it another value, or take it out",
        "an unknown profile": "there are A0, A1, A2, A3, A4, A5",
        "a slice that selects nothing": "`xcfg plan` without them lists the cases",
        "ten million cases": "--max-cases to allow them, or --filter or fewer values on the axes, or --mode pairwise",
    }
    assert done.code == code and message in said and hints[name] in said and done.out == ""

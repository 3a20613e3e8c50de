"""Rungs of the alignment ladder."""

from __future__ import annotations

import pytest

from xcfg.analyzer.ladder import Level, rung
from xcfg.model.status import Status

KNOBS = ("temperature", "dtype", "cache")


@pytest.mark.parametrize(
    ("production", "passes", "reference", "answer", "level", "satisfied"),
    [
        (Status.PASS, True, None, None, Level.L1, True),
        (Status.PASS, True, True, ("dtype",), Level.L1, True),
        (Status.FAIL, True, None, None, Level.L1, True),
        (Status.FAIL, False, True, ("dtype",), Level.L3, True),
        (Status.FAIL, False, True, ("temperature",), Level.L3, True),
        (Status.FAIL, False, True, ("dtype", "cache"), Level.L4, True),
        (Status.FAIL, False, True, KNOBS, Level.L5, True),
        (Status.FAIL, False, False, None, Level.L5, False),
        (Status.FAIL, False, None, None, Level.L2, False),
        (Status.INVALID_IDENTITY, False, True, ("temperature",), Level.L0, True),
        (Status.INVALID_IDENTITY, False, True, ("temperature", "dtype"), Level.L4, True),
        (Status.INVALID_IDENTITY, False, None, None, Level.L0, False),
        (Status.INVALID_IDENTITY, False, False, None, Level.L5, False),
        (None, False, None, None, Level.L2, False),
    ],
)
def test_rungs(production, passes, reference, answer, level, satisfied):
    found = rung(
        production=production,
        production_within=passes,
        reference_within=reference,
        answer=answer,
        knobs=KNOBS,
        logical=("temperature",),
    )
    assert (found.level, found.satisfied) == (level, satisfied)
    assert all(name in found.reason for name in answer or ()) or level is Level.L1


def test_one_knob_that_is_everything_is_one_local_alignment():
    found = rung(
        production=Status.FAIL, production_within=False, reference_within=True, answer=("dtype",), knobs=("dtype",)
    )
    assert found.level is Level.L3

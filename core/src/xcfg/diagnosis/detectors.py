"""Every detector."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xcfg.diagnosis.blocks import blocks
from xcfg.diagnosis.course import course
from xcfg.diagnosis.ends import ends
from xcfg.diagnosis.found import Found
from xcfg.diagnosis.groups import groups
from xcfg.diagnosis.keptmass import kept_mass
from xcfg.diagnosis.level import level
from xcfg.diagnosis.monotone import monotone
from xcfg.diagnosis.offset import constant_offset
from xcfg.diagnosis.pairing import pairing
from xcfg.diagnosis.processed import processed
from xcfg.diagnosis.proportional import proportional
from xcfg.diagnosis.shift import shift
from xcfg.diagnosis.steps import steps_growth
from xcfg.diagnosis.storage import low_precision_storage
from xcfg.diagnosis.tempered import temperature
from xcfg.diagnosis.view import View

Detector = Callable[[View], Found | None]
MANY: tuple[Callable[[View], list[Found]], ...] = (groups, course, blocks)
DETECTORS: tuple[Detector, ...] = (
    shift,
    pairing,
    constant_offset,
    temperature,
    kept_mass,
    processed,
    monotone,
    proportional,
    low_precision_storage,
    ends,
    steps_growth,
    level,
)


def candidates(view: View) -> list[Found]:
    """What every detector finds, in no order."""
    found: Iterable[Found | None] = [detector(view) for detector in DETECTORS]
    return [*(item for item in found if item), *(item for detector in MANY for item in detector(view))]

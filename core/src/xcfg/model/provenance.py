"""Requested, materialized and observed value of every knob of one side run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from xcfg.model.json import Json, freeze
from xcfg.model.kernel import BoundKernel


class KnobState(StrEnum):
    """How far a requested value got."""

    APPLIED = "applied"
    MISMATCH = "mismatch"
    UNOBSERVABLE = "unobservable"
    UNSUPPORTED = "unsupported"
    INAPPLICABLE = "inapplicable"


@frozen(kw_only=True)
class KnobProvenance:
    """One knob on one side. ``requested`` None means the engine chose; then materialized equals observed."""

    requested: Json = field(default=None, converter=freeze)
    materialized: Json = field(default=None, converter=freeze)
    observed: Json = field(default=None, converter=freeze)
    state: KnobState
    reason: str = ""

    @property
    def sound(self) -> bool:
        """True where the value was applied and seen, or has no meaning for the scorer."""
        return self.state in (KnobState.APPLIED, KnobState.INAPPLICABLE)


@frozen(kw_only=True)
class SideProvenance:
    """Knobs and kernel operators of one side run, as the ranks reported them."""

    knobs: Mapping[str, KnobProvenance] = field(factory=dict, converter=freeze)
    operators: Mapping[str, BoundKernel] = field(factory=dict, converter=freeze)

    @property
    def unsound(self) -> tuple[str, ...]:
        """Names of knobs whose value is not proven, sorted."""
        return tuple(sorted(name for name, item in self.knobs.items() if not item.sound))

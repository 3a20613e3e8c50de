"""Provenance: every knob of a side must be proven to have been in force."""

from __future__ import annotations

from collections.abc import Iterator

from xcfg.comparator.defect import Defect
from xcfg.model.attempt import SideResult
from xcfg.model.json import thaw
from xcfg.model.provenance import KnobProvenance, KnobState
from xcfg.model.status import Status


def provenance_defects(side: str, result: SideResult) -> Iterator[Defect]:
    """A defect for each knob that is not proven and for each kernel operator that fell back."""
    for name, knob in sorted(result.provenance.knobs.items()):
        if not knob.sound or not _equal(knob):
            state = knob.state.value if not knob.sound else KnobState.MISMATCH.value
            yield Defect(
                Status.INVALID_PROVENANCE,
                f"{side} knob {name} is {state}: requested {thaw(knob.requested)!r}, "
                f"materialized {thaw(knob.materialized)!r}, observed {thaw(knob.observed)!r}"
                + (f" ({knob.reason})" if knob.reason else ""),
            )
    for operator, bound in sorted(result.provenance.operators.items()):
        if bound.fallback:
            yield Defect(
                Status.INVALID_PROVENANCE,
                f"{side} operator {operator} fell back: backend {bound.backend} ran as {bound.concrete}",
            )


def _equal(knob: KnobProvenance) -> bool:
    """Whether the three values bear out the state ``applied``: the word alone proves nothing."""
    if knob.state is not KnobState.APPLIED:
        return True
    requested = knob.materialized if knob.requested is None else knob.requested
    return bool(requested == knob.materialized == knob.observed)

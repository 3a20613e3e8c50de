"""Provenance: every knob of a side must be proven to have been in force."""

from __future__ import annotations

from collections.abc import Iterator

from xcfg.comparator.defect import Defect
from xcfg.model.attempt import SideResult
from xcfg.model.json import thaw
from xcfg.model.provenance import KnobProvenance, KnobState
from xcfg.model.status import Status

DTYPE_KNOB = {"rollout": "rollout.dtype", "training": "training.compute_dtype"}
"""The knob that states the compute dtype of a side."""


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
    yield from _compute_dtype(side, result)
    for operator, bound in sorted(result.provenance.operators.items()):
        if bound.fallback:
            yield Defect(
                Status.INVALID_PROVENANCE,
                f"{side} operator {operator} fell back: backend {bound.backend} ran as {bound.concrete}",
            )


def _compute_dtype(side: str, result: SideResult) -> Iterator[Defect]:
    """The dtype that picks the row must be the one that the side's own dtype knob was seen to have."""
    knob = result.provenance.knobs.get(DTYPE_KNOB[side])
    if knob is None or knob.state is not KnobState.APPLIED:
        return
    for info in result.ranks:
        if info.compute_dtype != knob.observed:
            yield Defect(
                Status.INVALID_PROVENANCE,
                f"{side} rank {info.rank} computed in {info.compute_dtype or 'an unknown dtype'}, "
                f"while {DTYPE_KNOB[side]} was observed as {knob.observed}",
            )
            return


def _equal(knob: KnobProvenance) -> bool:
    """Whether the three values bear out the state ``applied``: the word alone proves nothing."""
    if knob.state is not KnobState.APPLIED:
        return True
    requested = knob.materialized if knob.requested is None else knob.requested
    return bool(requested == knob.materialized == knob.observed)

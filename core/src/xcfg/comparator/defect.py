"""Defects that make a comparison invalid, and which of several is named."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from xcfg.model.status import INVALID_PRECEDENCE, Status


@frozen
class Defect:
    """Why numbers may not be compared: the status it leads to and a sentence naming the place."""

    status: Status
    reason: str


def named(defects: Sequence[Defect]) -> Defect:
    """The defect to report: the status highest in ``INVALID_PRECEDENCE``, its sentences first, the others after."""
    ordered = sorted(defects, key=lambda item: INVALID_PRECEDENCE.index(item.status))
    status = ordered[0].status
    sentences = [
        item.reason if item.status is status else f"also {item.status.value}: {item.reason}" for item in ordered
    ]
    return Defect(status, "; ".join(sentences))

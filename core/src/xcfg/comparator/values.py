"""Values no comparison may contain: NaN, infinity, and a probability above one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from xcfg.comparator.defect import Defect
from xcfg.comparator.pairing import SideRows
from xcfg.model.status import Status

POSITIVE_ROUNDING = 1e-3
"""Nats above 0 that rounding explains; beyond it the artifact is wrong (measurement contract, recorded defects)."""


def sound(logp: np.ndarray) -> bool:
    """Whether no value, active or not, is one that a comparison may not contain: the quick answer for most arrays."""
    return not len(logp) or bool(logp.max() <= POSITIVE_ROUNDING and logp.min() > -np.inf)  # NaN makes both NaN


def not_finite(logp: np.ndarray) -> np.ndarray:
    """(n,) bool: NaN or infinite."""
    marks: np.ndarray = ~np.isfinite(logp)
    return marks


def positive(logp: np.ndarray) -> np.ndarray:
    """(n,) bool: a finite logprob above what rounding explains."""
    marks: np.ndarray = np.isfinite(logp) & (logp > POSITIVE_ROUNDING)
    return marks


def value_defects(ids: tuple[str, ...], side: str, rows: SideRows) -> Iterator[Defect]:
    """Defects of the active logprobs of every row of one side, replicas included."""
    samples = rows.samples
    active = samples.action_mask
    if sound(samples.logprobs):
        return
    infinite = active & not_finite(samples.logprobs)
    if infinite.any():
        yield Defect(Status.NON_FINITE, _sentence(ids, side, rows, infinite, "not finite"))
    above = active & positive(samples.logprobs)
    if above.any():
        yield Defect(Status.INVALID_ARTIFACT, _sentence(ids, side, rows, above, f"above {POSITIVE_ROUNDING:g}"))


def _sentence(ids: tuple[str, ...], side: str, rows: SideRows, bad: np.ndarray, what: str) -> str:
    at = rows.response_index(np.arange(len(rows.sequence)))
    flat = int(np.argmax(bad[at]))
    ends = np.cumsum(rows.response_length)
    row = int(np.searchsorted(ends, flat, side="right"))
    position = flat - int(ends[row] - rows.response_length[row])
    return (
        f"{int(bad.sum())} of {int(rows.samples.action_mask.sum())} active {side} logprobs are {what}, first "
        f"{float(rows.samples.logprobs[at[flat]])} in sequence {ids[int(rows.sequence[row])]!r} at position {position} "
        f"on rank {int(rows.rank[row])}"
    )

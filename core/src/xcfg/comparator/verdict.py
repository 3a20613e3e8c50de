"""The comparison as it is reported: invalid, failed to run, judged; and the worse of two."""

from __future__ import annotations

import math

from xcfg.comparator.defect import Defect
from xcfg.comparator.drift import Drift
from xcfg.comparator.tolerance import Row
from xcfg.model.result import Comparison
from xcfg.model.status import Status, severity
from xcfg.model.tolerance import ToleranceContract


def failed(status: Status, reason: str, contract: ToleranceContract) -> Comparison:
    """The comparison of a case of which a side has no result. Raises ValueError for a status that needs numbers."""
    if status.judged:
        raise ValueError(f"a case without results cannot be {status.value}")
    return Comparison(status=status, reason=reason, contract=contract.ref)


def decide(drift: Drift, row: Row, at: str) -> Defect:
    """Status and reason from the numbers: ``max_abs_dlogp <= threshold`` passes, equality included.

    Where a threshold is so wide that a metric overflows beneath it, the pair holds an infinity: never a pass.
    """
    value = drift.metrics["max_abs_dlogp"]
    if row.threshold is None:
        return Defect(Status.NO_THRESHOLD, row.reason)
    if not value <= row.threshold:
        return Defect(
            Status.FAIL, f"max_abs_dlogp {value:.6g} exceeds the {row.dtype} threshold {row.threshold:g} {at}"
        )
    if drift.overflowed:
        return Defect(Status.NON_FINITE, f"beyond the float range: {', '.join(drift.overflowed)} {at}")
    return Defect(Status.PASS, "")


def within(drift: Drift, row: Row) -> bool | None:
    """Whether the numbers satisfy another row; None where the contract has none."""
    if row.threshold is None:
        return None
    return drift.metrics["max_abs_dlogp"] <= row.threshold and not drift.overflowed


def worse(a: Comparison, b: Comparison) -> Comparison:
    """The comparison of the worse status; of two with one status, that of the larger ``max_abs_dlogp``; else ``a``."""
    return b if _badness(b) > _badness(a) else a


def _badness(comparison: Comparison) -> tuple[tuple[int, int], float]:
    return severity(comparison.status), comparison.metrics.get("max_abs_dlogp", math.inf)

"""Differences between the ranks of one topology and a reference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from xcfg.model.json import Json
from xcfg_kernels.drift.reference import Reference

Values = NDArray[np.floating]


def differences(found: Values, expected: Values) -> Mapping[str, Json]:
    """Maximum, percentiles (linear interpolation) and greatest relative size of ``found - expected``, in float64.

    A relative error against exactly 0 has no size: it counts only where the difference is 0 too, as 0.
    """
    error = np.abs(found.astype(np.float64) - expected)
    size = np.abs(expected)
    relative = np.divide(error, size, out=np.where(error == 0, 0.0, np.inf), where=size > 0)
    return {
        "max_abs": float(error.max()),
        "p95_abs": float(np.percentile(error, 95)),
        "p99_abs": float(np.percentile(error, 99)),
        "max_relative": _finite(float(relative.max())),
        "mean_signed": float((found.astype(np.float64) - expected).mean()),
        "values": error.size,
    }


def against(lse: Values, logprob: Values, references: tuple[Reference, ...], rows: slice) -> Mapping[str, Json]:
    """The log-sum-exp's drift from each reference, then that of the logprobs."""
    return {
        "lse": {item.name: differences(lse, item.lse[rows]) for item in references},
        "dlogp": {item.name: differences(logprob, item.logprob[rows]) for item in references},
    }


def worst(logprob: Values, expected: Values, targets: NDArray[np.int64], first: int = 0) -> dict[str, Json]:
    """The row whose logprob is furthest off, the lowest of several; rows are numbered from ``first``."""
    error = logprob.astype(np.float64) - expected
    place = int(np.abs(error).argmax())
    return {
        "row": first + place,
        "token": int(targets[place]),
        "logprob": float(logprob[place]),
        "reference_logprob": float(expected[place]),
        "dlogp": float(error[place]),
        "relative": _finite(abs(float(error[place])) / abs(float(expected[place]))) if expected[place] else None,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None

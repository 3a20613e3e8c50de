"""The two references of a sweep, in numpy: float64, and the plain float32 formula."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import DTypeLike, NDArray

from xcfg_kernels.drift.inputs import Inputs

ROWS = 8
"""Rows held in the wider dtype at a time."""


@frozen(kw_only=True, eq=False)
class Reference:
    """Log-sum-exp and logprob (rows,) in nats, computed in the dtype of the name and held in float64."""

    name: str
    lse: NDArray[np.float64]
    logprob: NDArray[np.float64]


def reference(inputs: Inputs, name: str) -> Reference:
    """``max + log(sum(exp(x - max)))`` over the whole vocabulary in ``float64`` or ``float32``, and ``x[t]`` minus it.

    The logprob is ``(x[t] - max) - log(sum)``, which cancels less than the difference of two large numbers.
    """
    kind: DTypeLike = np.dtype(name)
    lse, logprob = np.empty(len(inputs.targets)), np.empty(len(inputs.targets))
    for start in range(0, len(inputs.targets), ROWS):
        part = slice(start, start + ROWS)
        rows = inputs.logits[part].astype(kind)
        top = rows.max(axis=1)
        log_sum = np.log(np.exp(rows - top[:, None]).sum(axis=1))
        wanted = np.take_along_axis(rows, inputs.targets[part, None], axis=1)[:, 0]
        lse[part], logprob[part] = top + log_sum, (wanted - top) - log_sum
    return Reference(name=name, lse=lse, logprob=logprob)

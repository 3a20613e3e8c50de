"""The logits and targets of a sweep, made by numpy alone so that no rank has a part in them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from xcfg_kernels.drift.spec import SCALE, DriftSpec

TARGETS = "targets.npy"


@frozen(kw_only=True, eq=False)
class Inputs:
    """``logits`` (rows, V) float32 hold the values of the dtype the ranks get; ``digest`` is of the stored bytes."""

    dtype: str
    logits: NDArray[np.float32]
    targets: NDArray[np.int64]
    digest: str


def logits_file(dtype: str) -> str:
    """The name of the stored logits: float32, float16, or the upper halves of float32 as uint16 for bfloat16."""
    return f"logits-{dtype}.npy"


def written(spec: DriftSpec, dtype: str, folder: Path) -> Inputs:
    """Make the inputs of one dtype and store what the ranks read."""
    random = np.random.Generator(np.random.PCG64(spec.seed))
    targets = random.integers(0, spec.vocab_size, spec.rows, dtype=np.int64)
    logits = random.standard_normal((spec.rows, spec.vocab_size), dtype=np.float32) * np.float32(SCALE)
    stored, held = _rounded(logits, dtype)
    np.save(folder / logits_file(dtype), stored)
    np.save(folder / TARGETS, targets)
    digest = hashlib.sha256(np.ascontiguousarray(stored).tobytes() + targets.tobytes()).hexdigest()
    return Inputs(dtype=dtype, logits=held, targets=targets, digest=digest)


def _rounded(logits: NDArray[np.float32], dtype: str) -> tuple[NDArray[np.generic], NDArray[np.float32]]:
    """As stored, and the same values in float32. Rounds to nearest, ties to even."""
    if dtype == "float32":
        return logits, logits
    if dtype == "float16":
        half = logits.astype(np.float16)
        return half, half.astype(np.float32)
    bits = logits.view(np.uint32)
    upper = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
    return upper, (upper.astype(np.uint32) << np.uint32(16)).view(np.float32)

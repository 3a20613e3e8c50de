"""Rounding of float32 arrays to the dtypes that models are run in, fast enough for whole logit matrices."""

from __future__ import annotations

import numpy as np

DTYPES = ("float32", "float16", "bfloat16")
UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""The largest relative error of one rounding."""
_DROPPED = {"float16": 13, "bfloat16": 16}
"""Fraction bits of float32 that the dtype has not."""


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """``values`` (float32, any shape) rounded to nearest even at the fraction bits of ``dtype``, as float32.

    The exponent keeps float32's range: nothing here comes near the limits of float16. Finite values only.
    """
    if dtype == "float32":
        return values
    dropped = _DROPPED[dtype]
    bits = np.ascontiguousarray(values).view(np.uint32)
    odd = (bits >> np.uint32(dropped)) & np.uint32(1)
    odd += np.uint32((1 << (dropped - 1)) - 1)
    odd += bits
    odd &= np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
    return odd.view(np.float32)

"""Emulation of storage dtypes on float32 arrays."""

from __future__ import annotations

import numpy as np

_FRACTION_BITS = {"float32": 23, "float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e5m2": 2}


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """``values`` (float32, any shape) rounded to nearest even at the fraction bits of ``dtype``, as float32.

    The exponent keeps float32's range: the fake model's numbers stay far from the limits of the small dtypes.
    """
    if dtype == "float32":
        return values
    bits = _FRACTION_BITS[dtype] + 1
    fraction, exponent = np.frexp(values)
    result: np.ndarray = np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits)
    return result

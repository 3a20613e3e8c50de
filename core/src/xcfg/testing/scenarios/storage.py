"""Logprobs that were kept in fewer bits than they were worked out in."""

from __future__ import annotations

import numpy as np

from xcfg.testing.scenarios.draft import Draft, Half
from xcfg.testing.scenarios.precision import rounded
from xcfg.testing.scenarios.scenario import scenario

BITS = {"bfloat16": 7, "float16": 10, "float8_e4m3fn": 3, "float8_e5m2": 2}


def kept_in(logprob: np.ndarray, dtype: str) -> np.ndarray:
    """(N,) float64 rounded to ``dtype``'s fraction bits; numbers so small that its exponent ends are 0."""
    if dtype in ("bfloat16", "float16"):
        return rounded(logprob.astype(np.float32), dtype).astype(np.float64)
    fraction, exponent = np.frexp(logprob)
    least = -6 if dtype == "float8_e4m3fn" else -14
    step = np.maximum(exponent - 1, least) - BITS[dtype]
    result: np.ndarray = np.ldexp(np.rint(np.ldexp(fraction, exponent - step)), step)
    return result


def _store(half: Half, dtype: str) -> None:
    half.after.append(lambda logprob: kept_in(logprob, dtype))


@scenario("storage-bfloat16", "low-precision-storage")
def in_bfloat16(draft: Draft) -> None:
    """One side's values are steps that grow with |logprob|: it kept them in bfloat16, and says so."""
    half = draft.either()
    half.stored = "bfloat16"
    _store(half, "bfloat16")


@scenario("storage-misstated", "low-precision-storage")
def misstated(draft: Draft) -> None:
    """The same in float16 or bfloat16, under a header that says float32: cast before, and back after, the transfer."""
    _store(draft.either(), ["float16", "bfloat16"][int(draft.pick(0, 1))])


@scenario("storage-float8", "low-precision-storage")
def in_float8(draft: Draft) -> None:
    """The same in eight bits: steps of an eighth of the value."""
    _store(draft.either(), ["float8_e4m3fn", "float8_e5m2"][int(draft.pick(0, 1))])


@scenario("storage-decimals", "low-precision-storage", accept=("unknown", "floor"))
def decimals(draft: Draft) -> None:
    """One side's values have two or three decimals: printed into JSON and read again.

    The step is not a power of two and may be inside the floor of the dtype, so that no name need be given.
    """
    digits = int(draft.pick(2, 3))
    draft.facts["digits"] = digits
    draft.either().after.append(lambda logprob: np.round(logprob, digits))

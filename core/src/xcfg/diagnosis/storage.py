"""Logprobs of one side that were kept in a low precision."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import Found
from xcfg.diagnosis.likelihood import gain
from xcfg.diagnosis.view import View

BITS = {3: "float8_e5m2", 4: "float8_e4m3fn", 8: "bfloat16", 11: "float16"}
"""Significant bits with the leading one."""
FIXED = tuple(range(2, 13))
"""Steps of 2^-k that do not grow with abs(logp)."""
ON_GRID = 0.98
OFF_GRID = 0.5
FEWEST = 16


def low_precision_storage(view: View) -> Found | None:
    """One side's values are multiples of a coarse step and the other side's are not.

    Rounding takes each value by at most half a step: what is left of d is its part beyond that.
    """
    found = []
    for side, own, other in (("training", view.y, view.x), ("rollout", view.x, view.y)):
        some = own[view.sample]
        for name, step in _steps(some):
            mine = _share(some, step)
            theirs = _share(other[view.sample], _steps_of(name, other[view.sample]))
            if mine < ON_GRID or theirs > OFF_GRID:
                continue
            half = 0.5 * _steps_of(name, own)
            left = np.sign(view.d) * np.maximum(view.size - half, 0.0)
            coarse = float(np.mean(half / view.floor.scale))
            reached = gain(view.z, left / view.floor.scale)
            share = view.explained(left)
            found.append(
                Found(
                    kind="low-precision-storage",
                    gain=(reached if coarse > 0.7 else 0.0) + 30.0,
                    left=left,
                    certain=True,
                    confidence="high" if share > 0.5 else "medium",
                    evidence={
                        "side": side,
                        "stored_as": name,
                        "values_on_grid": mine,
                        "values_of_other_side_on_grid": theirs,
                        "largest_half_step": float(half.max()),
                        "half_step_in_floors": coarse,
                    },
                )
            )
            break
    return max(found, key=lambda item: item.gain, default=None)


def _steps(values: np.ndarray) -> list[tuple[str, np.ndarray]]:
    if np.count_nonzero(values) < FEWEST or len(np.unique(values)) < 4:
        return []
    names = [*BITS.values(), *(f"multiples of 2^-{k}" for k in FIXED)]
    return [(name, _steps_of(name, values)) for name in names]


def _steps_of(name: str, values: np.ndarray) -> np.ndarray:
    """The step of the grid at each value."""
    if name.startswith("multiples"):
        return np.full(len(values), 2.0 ** -int(name.rpartition("-")[2]))
    bits = next(bits for bits, dtype in BITS.items() if dtype == name)
    step: np.ndarray = np.ldexp(1.0, np.frexp(values)[1] - bits)
    return step


def _share(values: np.ndarray, step: np.ndarray) -> float:
    """The share of the values, zeros aside, that are multiples of the step."""
    filled = values != 0
    if not filled.any():
        return 0.0
    ratio = values[filled] / step[filled]
    return float(np.mean(ratio == np.rint(ratio)))

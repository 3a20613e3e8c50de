"""Dtype names as they appear in experiments, and the torch dtypes they mean."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

PRECISION_ORDER = ("float64", "float32", "float16", "bfloat16")
"""From highest to lowest, as the tolerance contract orders compute dtypes."""


def torch_dtype(name: str) -> torch.dtype:
    """The dtype called ``name``. Raises ValueError for a name that is no dtype of a forward pass."""
    import torch

    if name not in PRECISION_ORDER:
        raise ValueError(f"{name!r} is not one of {', '.join(PRECISION_ORDER)}")
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def dtype_name(dtype: torch.dtype) -> str:
    """``bfloat16`` for ``torch.bfloat16``."""
    return str(dtype).removeprefix("torch.")


def lowest_precision(names: Collection[str]) -> str:
    """The least precise of the dtypes seen; a dtype outside the order wins, because no threshold covers it."""
    outside = sorted(set(names) - set(PRECISION_ORDER))
    return outside[0] if outside else max(names, key=PRECISION_ORDER.index)

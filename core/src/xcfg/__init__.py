"""Agreement of rollout and training logprobs, proven from the live engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xcfg.api import compare_logprobs

__all__ = ["compare_logprobs"]


def __getattr__(name: str) -> Any:
    """Import the Python API on first use: ``import xcfg`` alone loads nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from xcfg import api

    return getattr(api, name)

"""Agreement of rollout and training logprobs, proven from the live engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xcfg.api import compare_logprobs
    from xcfg.model.status import Status

__all__ = ["Status", "compare_logprobs"]


def __getattr__(name: str) -> Any:
    """Import the Python API on first use: ``import xcfg`` alone loads nothing."""
    if name == "compare_logprobs":
        from xcfg.api import compare_logprobs

        return compare_logprobs
    if name == "Status":
        from xcfg.model.status import Status

        return Status
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

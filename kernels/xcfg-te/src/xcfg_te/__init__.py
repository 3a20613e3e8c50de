"""Transformer Engine's parallel cross entropy as a kernel backend for xcfg. Importing it imports no engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xcfg_te.logprob import selected_logprob

__all__ = ["selected_logprob"]


def __getattr__(name: str) -> Any:
    """The function that needs torch, imported when first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from xcfg_te.logprob import selected_logprob

    return selected_logprob

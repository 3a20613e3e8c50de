"""Teacher-forcing scorer for Hugging Face causal language models. Importing this package imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xcfg_torch.comparing import compare_logprobs

__all__ = ["compare_logprobs"]


def __getattr__(name: str) -> Any:
    """Import ``compare_logprobs``, and torch with it, on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from xcfg_torch import comparing

    return getattr(comparing, name)

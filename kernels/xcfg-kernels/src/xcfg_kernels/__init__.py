"""Kernel backends for xcfg, and logprobs that keep their bits under sharding. Importing it imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcfg_kernels.reduction import ReductionSpec, Scheme
from xcfg_kernels.sharding import ShardingSpec, even_shards, unsharded

if TYPE_CHECKING:
    from xcfg_kernels.logprob import selected_logprob, selected_logprob_and_lse, simulated_logprob_and_lse

__all__ = [
    "ReductionSpec",
    "Scheme",
    "ShardingSpec",
    "even_shards",
    "selected_logprob",
    "selected_logprob_and_lse",
    "simulated_logprob_and_lse",
    "unsharded",
]


def __getattr__(name: str) -> Any:
    """The functions that need torch, imported when first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from xcfg_kernels import logprob

    return getattr(logprob, name)

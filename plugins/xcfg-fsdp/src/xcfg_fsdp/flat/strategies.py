"""How FSDP1's strategies relate to ``training.sharding``, which is the one that is asked for."""

from __future__ import annotations

from collections.abc import Mapping

SHARDING_OF: Mapping[str, str] = {
    "FULL_SHARD": "full_shard",
    "SHARD_GRAD_OP": "full_shard",
    "HYBRID_SHARD": "hybrid",
    "_HYBRID_SHARD_ZERO2": "hybrid",
    "NO_SHARD": "unsharded",
}
"""The sharding of parameters under each strategy."""

FREES_LAYERS = frozenset({"FULL_SHARD", "HYBRID_SHARD"})
"""Strategies under which a layer frees its gathered parameters after its forward; the root never does."""


def plain_strategy(sharding: str) -> str:
    """The strategy of a sharding where none is asked for: the first."""
    return next(name for name, of in SHARDING_OF.items() if of == sharding)

"""A checked sharding and reduction: what one rank computes, and what all ranks must agree on."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from attrs import frozen

from xcfg.model.ids import canonical
from xcfg_kernels.reduction import ReductionSpec, check_reduction
from xcfg_kernels.sharding import ShardingSpec


@frozen(kw_only=True)
class Layout:
    """A sharding under a reduction. Under ``order_free`` the blocks are not used.

    ``slots`` blocks are carried for every rank, so that all carry the same number; ``counts`` of them hold columns of
    the vocabulary, the rest only padding.
    """

    sharding: ShardingSpec
    reduction: ReductionSpec

    def __attrs_post_init__(self) -> None:
        """Raises InvalidInput where they contradict each other."""
        check_reduction(self.reduction, self.sharding)

    @property
    def width(self) -> int:
        """Columns of a block."""
        return self.reduction.width(self.sharding.vocab_size)

    @property
    def slots(self) -> int:
        """Blocks carried for each rank."""
        return -(-self.sharding.columns // self.width)

    @property
    def counts(self) -> tuple[int, ...]:
        """Blocks of each rank that hold columns of the vocabulary."""
        ends = (min(end, self.sharding.vocab_size) for _, end in self.sharding.bounds)
        columns = (max(end - start, 0) for end, (start, _) in zip(ends, self.sharding.bounds, strict=True))
        return tuple(-(-count // self.width) for count in columns)


@lru_cache(maxsize=256)
def checked_layout(sharding: ShardingSpec, reduction: ReductionSpec) -> Layout:
    """The layout, checked once for each pair. Raises InvalidInput."""
    return Layout(sharding=sharding, reduction=reduction)


@lru_cache(maxsize=256)
def agreement(layout: Layout, implementation: str, dtype: str) -> tuple[float, float, float]:
    """72 bits of the SHA-256 of what every rank must have alike, as three numbers that float32 holds exactly."""
    sharding, reduction = layout.sharding, layout.reduction
    record = [sharding.record(), reduction.record(sharding.vocab_size), implementation, dtype]
    found = hashlib.sha256(canonical(record)).digest()
    first, second, third = (float(int.from_bytes(found[place : place + 3], "big")) for place in (0, 3, 6))
    return first, second, third

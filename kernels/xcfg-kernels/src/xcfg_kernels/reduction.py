"""How the log-sum-exp over the vocabulary is reduced: the scheme, its order, and what its bits do not depend on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from enum import StrEnum

from attrs import frozen

from xcfg.errors import Fault, InvalidInput
from xcfg.model.json import Json
from xcfg_kernels.sharding import ShardingSpec

BLOCKS = 128
"""Blocks that :func:`default_block` aims at, and the width it falls back to."""
LARGEST_BLOCK = 16_384
"""Wider blocks could be summed by several threads at once, in an order that depends on how many there are."""
LARGEST_ORDER_FREE = 2**22
"""Columns whose fixed-point weights of at most 2**40 cannot overflow 63 bits, with one bit to spare."""


class Scheme(StrEnum):
    """How partial sums meet."""

    CANONICAL_BLOCKS = "canonical_blocks"
    ORDER_FREE = "order_free"


_SCHEMES: Mapping[Scheme, Mapping[str, str]] = {
    Scheme.CANONICAL_BLOCKS: {
        "partials": "(max, sum of exp(x - max)) of each block of the real vocabulary, float32",
        "merge": "max-sumexp in float32, one binary tree over the blocks in ascending global order",
        "shards": "even, every boundary below the vocabulary's end is an edge of a block",
    },
    Scheme.ORDER_FREE: {
        "partials": "sum of int64(exp(x - global max) * 2**40), the exponential in float32",
        "merge": "maximum, then integer sum: exact, so in any order",
        "shards": "any, even or uneven",
    },
}


@frozen(kw_only=True)
class ReductionSpec:
    """The reduction of one log-sum-exp. ``block`` is the width of the canonical blocks; None takes the default.

    Blocks begin at column 0 of the real vocabulary and do not move with the tensor-parallel degree or the padding; the
    last may be narrower. Collectives only carry partial results, they never add.
    """

    scheme: Scheme = Scheme.CANONICAL_BLOCKS
    block: int | None = None

    def __attrs_post_init__(self) -> None:
        """Raises InvalidInput."""
        if self.scheme is Scheme.ORDER_FREE and self.block is not None:
            raise InvalidInput("order_free has no blocks", where="reduction.block", hint="leave it out")
        if self.block is not None and not 1 <= self.block <= LARGEST_BLOCK:
            raise InvalidInput(f"a block of {self.block} columns is not in [1, {LARGEST_BLOCK}]", where="reduction")

    def width(self, vocab_size: int) -> int:
        """Columns of a canonical block of this vocabulary."""
        return self.block or default_block(vocab_size)

    def record(self, vocab_size: int) -> Mapping[str, Json]:
        """What every rank must agree on, and what a report says of the merge."""
        blocks = self.scheme is Scheme.CANONICAL_BLOCKS
        return {
            "scheme": str(self.scheme),
            "block": self.width(vocab_size) if blocks else None,
            "accumulation": "float32" if blocks else "int64 fixed point, 2**-40",
            "collective": "all_gather, transport only",
            "invariant": "tensor-parallel degree, padding, batch size, threads, repeated runs of one implementation",
            **_SCHEMES[self.scheme],
        }


def default_block(vocab_size: int) -> int:
    """A 128th of the vocabulary where that is a whole number of 64 to 4096 columns, otherwise 128 columns.

    The first fits unpadded shards of any power-of-two degree up to 128, the second those padded to multiples of 128.
    """
    width, rest = divmod(vocab_size, BLOCKS)
    return width if rest == 0 and 64 <= width <= 4096 else BLOCKS


def check_reduction(reduction: ReductionSpec, sharding: ShardingSpec) -> None:
    """Raises InvalidInput where the scheme would not give the same bits under this sharding."""
    rule = _order_free_faults if reduction.scheme is Scheme.ORDER_FREE else _block_faults
    if faults := tuple(rule(reduction, sharding)):
        raise InvalidInput(faults=faults)


def _order_free_faults(reduction: ReductionSpec, sharding: ShardingSpec) -> Iterator[Fault]:
    if sharding.vocab_size > LARGEST_ORDER_FREE:
        message = f"{reduction.scheme} sums at most {LARGEST_ORDER_FREE} columns, not {sharding.vocab_size}"
        yield Fault(message=message, where="reduction")


def _block_faults(reduction: ReductionSpec, sharding: ShardingSpec) -> Iterator[Fault]:
    widths = {end - start for start, end in sharding.bounds}
    if len(widths) > 1:
        message = f"{reduction.scheme} needs shards of one width, these have {sorted(widths)}"
        yield Fault(message=message, where="sharding", hint="pad the vocabulary, or use the scheme order_free")
    width = reduction.width(sharding.vocab_size)
    inner = [start for start, _ in sharding.bounds[1:] if start < sharding.vocab_size]
    off = [start for start in inner if start % width]
    if off:
        message = f"column {off[0]} is a shard boundary but no edge of a block of {width}"
        yield Fault(message=message, where="reduction.block", hint=_fitting(math.gcd(*inner), width))


def _fitting(boundary: int, width: int) -> str:
    """The widest narrower block that fits."""
    fits = next(size for size in range(min(width, boundary), 0, -1) if boundary % size == 0)
    return f"blocks of {fits} would fit" if fits > 1 else "no block fits; use the scheme order_free"

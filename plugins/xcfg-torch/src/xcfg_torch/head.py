"""An output head whose vocabulary columns lie on several ranks, and who gets the logits: one rank's kernel or all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from xcfg.model.json import Json

if TYPE_CHECKING:
    import torch

FULL_VOCABULARY = "full-vocabulary"
VOCAB_PARALLEL = "vocab-parallel"


@frozen(kw_only=True, eq=False)
class HeadShare:
    """The columns of the output head that this rank of the tensor-parallel ``group`` has.

    ``bounds`` are [start, end) of every rank, in rank order; columns from ``vocab_size`` on are padding and no part
    of the normaliser. ``layout`` says what the logprob kernel gets: this rank's columns, or whole rows of all ranks.
    """

    group: Any
    rank: int
    bounds: tuple[tuple[int, int], ...] = field(converter=lambda bounds: tuple((int(a), int(b)) for a, b in bounds))
    vocab_size: int
    layout: str = FULL_VOCABULARY

    @property
    def columns(self) -> int:
        """Columns of this rank, padding included."""
        start, end = self.bounds[self.rank]
        return end - start

    @property
    def sharding(self) -> Mapping[str, Json] | None:
        """What a kernel must know of the shards, as :class:`xcfg.model.kernel.KernelRequest` has it."""
        if self.layout == FULL_VOCABULARY:
            return None
        return {
            "bounds": [list(bound) for bound in self.bounds],
            "vocab_size": self.vocab_size,
            "padded_vocab_size": self.bounds[-1][1],
            "tp_rank": self.rank,
            "tp_world": len(self.bounds),
        }

    def for_kernel(self, own: torch.Tensor) -> tuple[torch.Tensor, Mapping[str, Any]]:
        """Rows (N, columns) of this rank as the kernel gets them, and what it is called with besides.

        Whole rows (N, vocab_size) are gathered from all ranks, which must all make the call with equally many rows.
        """
        if self.layout == VOCAB_PARALLEL:
            return own, {"group": self.group}
        import torch
        import torch.distributed as dist

        widest = max(end - start for start, end in self.bounds)
        padded = own.new_zeros((len(own), widest))
        padded[:, : own.shape[1]] = own
        parts = [torch.empty_like(padded) for _ in self.bounds]
        dist.all_gather(parts, padded, group=self.group)
        cut = [part[:, : end - start] for part, (start, end) in zip(parts, self.bounds, strict=True)]
        return torch.cat(cut, dim=1)[:, : self.vocab_size], {}

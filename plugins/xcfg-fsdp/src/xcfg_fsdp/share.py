"""The columns of the rows that a rank of a context-parallel group has, and what the group puts together again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from xcfg_fsdp.context_layout import CONTIGUOUS, columns_of, pieces

if TYPE_CHECKING:
    import torch


@frozen(kw_only=True, eq=False)
class ContextShare:
    """The ``index``-th of ``size`` ranks of ``group``, each of which has the columns that ``layout`` gives it."""

    group: Any
    size: int
    index: int
    layout: str = CONTIGUOUS

    @property
    def multiple(self) -> int:
        """Rows have a multiple of so many columns."""
        return pieces(self.layout, self.size)

    def columns(self, width: int) -> torch.Tensor:
        """The columns of this rank, (W,) int64 and ascending, of rows of ``width``."""
        return self._columns(width, self.index)

    def gather(self, own: torch.Tensor, dim: int) -> torch.Tensor:
        """The tensors of all ranks, of equal shapes, joined along ``dim`` in the order of columns."""
        import torch
        import torch.distributed as dist

        parts = [torch.empty_like(own, memory_format=torch.contiguous_format) for _ in range(self.size)]
        dist.all_gather(parts, own.contiguous(), group=self.group)
        joined = torch.cat(parts, dim=dim)
        if self.layout == CONTIGUOUS:
            return joined
        had = torch.cat([self._columns(joined.shape[dim], rank) for rank in range(self.size)])
        return joined.index_select(dim, had.argsort().to(own.device))

    def whole(self, logprobs: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
        """Logprobs (N,) of every response token (True in ``response``, (B, T)), from those this rank scored."""
        before = response.roll(-1, dims=1)  # column t scores the token at t + 1; no row starts with a response token
        mine = before[:, self.columns(response.shape[1]).to(response.device)]
        scores = logprobs.new_zeros(mine.shape).masked_scatter(mine, logprobs)
        return self.gather(scores, dim=1)[before]

    def _columns(self, width: int, index: int) -> torch.Tensor:
        import torch

        return torch.tensor(columns_of(self.layout, width, size=self.size, index=index), dtype=torch.int64)

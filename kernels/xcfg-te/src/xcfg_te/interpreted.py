"""Transformer Engine's cross entropy on a CPU: its launcher and its Triton kernels, interpreted."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.autograd.function import once_differentiable

from xcfg_te.source import launcher


class CrossEntropy(torch.autograd.Function):
    """What ``transformer_engine.pytorch.cross_entropy.CrossEntropyFunction`` does with the same two launchers.

    That class needs the shared libraries to be imported, and its checks ask for CUDA tensors.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, targets: torch.Tensor, group: dist.ProcessGroup | None, ignore_index: int
    ) -> torch.Tensor:
        """``logits`` (1, N, columns), ``targets`` (N,): losses (1, N) float32 in nats."""
        found = launcher().cross_entropy_forward(logits, targets, 0.0, False, group, ignore_index, False)
        loss, saved, stats, saved_targets, _, ctx.rank, ctx.world = found
        ctx.save_for_backward(saved, stats, saved_targets)
        ctx.ignore_index = ignore_index
        return loss  # type: ignore[no-any-return]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """The gradient in the dtype of the logits. The kernel writes it over what was saved, hence the copy."""
        saved, stats, targets = ctx.saved_tensors
        gradient = launcher().cross_entropy_backward(
            saved.clone(), stats, targets, None, of_loss, 0.0, False, ctx.rank, ctx.world, ctx.ignore_index
        )
        return gradient, None, None, None

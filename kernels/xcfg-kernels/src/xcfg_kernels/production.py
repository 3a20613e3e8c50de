"""The framework's own log-softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcfg_kernels.selected import SelectedLogprobBackend

if TYPE_CHECKING:
    import torch


class Production(SelectedLogprobBackend):
    """``torch.log_softmax`` in fp32 over the whole vocabulary, then a gather."""

    id = "production"
    primitives = "torch.log_softmax, gather"

    def rows(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Logprobs (n,) float32 in nats."""
        import torch

        return torch.log_softmax(logits, dim=-1).gather(1, targets[:, None])[:, 0]

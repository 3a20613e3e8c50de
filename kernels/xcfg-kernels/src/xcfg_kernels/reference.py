"""Log-softmax written out, so that each step is its own fp32 operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcfg_kernels.selected import SelectedLogprobBackend

if TYPE_CHECKING:
    import torch


class Reference(SelectedLogprobBackend):
    """``x[t] - max - log(sum(exp(x - max)))``: the shifted log-sum-exp, in fp32."""

    id = "reference"
    primitives = "amax, exp, sum, log"

    def rows(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Logprobs (n,) float32 in nats. A row whose maximum is not finite gives NaN."""
        shifted = logits - logits.amax(dim=-1, keepdim=True)
        normaliser = shifted.exp().sum(dim=-1).log()
        return shifted.gather(1, targets[:, None])[:, 0] - normaliser

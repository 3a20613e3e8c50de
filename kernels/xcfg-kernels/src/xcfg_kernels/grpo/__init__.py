"""The GRPO loss with a declared order of addition: the same bits wherever the tokens of a batch lie. Needs torch."""

from __future__ import annotations

from xcfg_kernels.grpo.advantages import AdvantageSpec, Scale, group_advantages
from xcfg_kernels.grpo.counts import token_weights
from xcfg_kernels.grpo.layout import LossLayout, even_layout
from xcfg_kernels.grpo.loss import GrpoLoss, active_counts, grpo_loss, loss_axes
from xcfg_kernels.grpo.order import merged, of_sequences
from xcfg_kernels.grpo.policy import KlEstimator, PolicyLossSpec
from xcfg_kernels.grpo.reduction import Accumulation, Count, LossReductionSpec, Normaliser, Order
from xcfg_kernels.grpo.tokens import Microbatch, TokenTerms, token_terms

__all__ = [
    "Accumulation",
    "AdvantageSpec",
    "Count",
    "GrpoLoss",
    "KlEstimator",
    "LossLayout",
    "LossReductionSpec",
    "Microbatch",
    "Normaliser",
    "Order",
    "PolicyLossSpec",
    "Scale",
    "TokenTerms",
    "active_counts",
    "even_layout",
    "group_advantages",
    "grpo_loss",
    "loss_axes",
    "merged",
    "of_sequences",
    "token_terms",
    "token_weights",
]

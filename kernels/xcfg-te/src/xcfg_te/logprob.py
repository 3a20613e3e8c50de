"""Selected-token logprobs by Transformer Engine's parallel cross entropy."""

from __future__ import annotations

import torch
import torch.distributed as dist

from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.model.capability import Unsupported
from xcfg_te.capability import probe
from xcfg_te.group import check_group
from xcfg_te.interpreted import CrossEntropy
from xcfg_te.source import public

_NEVER = -100
"""What Transformer Engine is told to ignore where nothing is: no token has this id."""


def selected_logprob(
    logits: torch.Tensor,
    targets: torch.Tensor,
    group: dist.ProcessGroup | None = None,
    *,
    vocab_size: int,
    ignore_index: int | None = None,
) -> torch.Tensor:
    """``logit[target] - logsumexp(logits)``, (N,) float32 in nats: the negated cross entropy.

    ``logits`` (N, columns) float32 or bfloat16 are this rank's equal part of ``vocab_size`` columns, in the order of
    the ranks of ``group``; without a group they are all of them. ``targets`` (N,) int64 are token ids of the whole
    vocabulary, the same on every rank; one of ``ignore_index`` has logprob 0 and no gradient. Differentiable in
    ``logits``; the gradient has their dtype.

    Raises InvalidInput where shapes, targets or ranks contradict each other, UnsupportedError where Transformer Engine
    cannot serve these logits or is not there.
    """
    _check(logits, targets, vocab_size, ignore_index)
    check_group(logits, group, vocab_size)
    if not len(targets):
        return logits.float().sum(dim=-1)  # Transformer Engine takes no empty tensor
    ignored = _NEVER if ignore_index is None else ignore_index
    if logits.device.type == "cpu":
        loss = CrossEntropy.apply(logits[None], targets, group, ignored)
    else:
        loss = public()(logits[None], targets[None], 0.0, False, group, ignored)
    return -loss[0]


def _check(logits: torch.Tensor, targets: torch.Tensor, vocab_size: int, ignore_index: int | None) -> None:
    if logits.ndim != 2 or targets.shape != logits.shape[:1]:
        shapes = f"{tuple(logits.shape)} and {tuple(targets.shape)}"
        raise InvalidInput(f"logits (N, V) and targets (N,) are needed, got {shapes}", where="targets")
    capability = probe(logits.device.type, str(logits.dtype).removeprefix("torch."))
    if isinstance(capability, Unsupported):
        raise UnsupportedError(capability.reason, where="logits")
    if targets.dtype != torch.int64 or targets.device != logits.device:
        message = f"targets are int64 beside the logits, not {targets.dtype} on {targets.device}"
        raise InvalidInput(message, where="targets")
    outside = (targets < 0) | (targets >= vocab_size)
    if ignore_index is not None:
        outside &= targets != ignore_index
    if bool(outside.any()):
        row = int(outside.nonzero()[0])
        message = f"target {int(targets[row])} of row {row} is no token of a vocabulary of {vocab_size}"
        raise InvalidInput(message, where="targets")

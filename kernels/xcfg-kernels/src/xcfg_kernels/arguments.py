"""What a call must bring: shapes, layout, dtype and targets that fit the sharding."""

from __future__ import annotations

import torch

from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.model.capability import Unsupported
from xcfg_kernels.capability import Implementation, probe
from xcfg_kernels.reduction import ReductionSpec
from xcfg_kernels.sharding import ShardingSpec

IGNORE_INDEX = -100
"""The target of a row that has none, as in ``torch.nn.functional.cross_entropy``."""


def checked(
    logits: torch.Tensor,
    targets: torch.Tensor,
    sharding: ShardingSpec,
    reduction: ReductionSpec,
    implementation: Implementation,
    ignore_index: int,
) -> torch.Tensor:
    """The logits as (N, columns), without a copy. Raises InvalidInput and UnsupportedError."""
    if logits.ndim < 1 or targets.shape != logits.shape[:-1]:
        shapes = f"{tuple(logits.shape)} and {tuple(targets.shape)}"
        raise InvalidInput(f"logits (..., V) and targets (...) are needed, got {shapes}", where="targets")
    if logits.shape[-1] != sharding.columns:
        message = f"the logits have {logits.shape[-1]} columns, the sharding gives this rank {sharding.columns}"
        raise InvalidInput(message, where="sharding", hint="declare padding in padded_vocab_size and bounds")
    if targets.dtype not in (torch.int64, torch.int32) or targets.device != logits.device:
        message = f"targets are whole numbers beside the logits, not {targets.dtype} on {targets.device}"
        raise InvalidInput(message, where="targets")
    dtype = str(logits.dtype).removeprefix("torch.")
    capability = probe(implementation, reduction.scheme, logits.device, dtype)
    if isinstance(capability, Unsupported):
        raise UnsupportedError(capability.reason, where="implementation")
    _check_targets(targets, sharding.vocab_size, ignore_index)
    return _rows(logits)


def _check_targets(targets: torch.Tensor, vocab_size: int, ignore_index: int) -> None:
    outside = ((targets < 0) | (targets >= vocab_size)) & (targets != ignore_index)
    if bool(outside.any()):
        place = outside.nonzero()[0].tolist()
        message = f"target {int(targets[tuple(place)])} at {place} is no token of a vocabulary of {vocab_size}"
        raise InvalidInput(message, where="targets", hint=f"a row without a target has {ignore_index}")


def _rows(logits: torch.Tensor) -> torch.Tensor:
    if logits.numel() and logits.shape[-1] > 1 and logits.stride(-1) != 1:
        message = "the columns of a row must lie side by side in memory"
        raise UnsupportedError(message, where="logits", hint="call .contiguous() first")
    try:
        return logits.view(-1, logits.shape[-1])
    except RuntimeError as reason:
        message = "the leading dimensions cannot be seen as rows without a copy of the logits"
        raise UnsupportedError(message, where="logits", hint="give (N, V), or call .contiguous() first") from reason

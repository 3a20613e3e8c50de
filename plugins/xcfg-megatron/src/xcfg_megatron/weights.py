"""Filling a live GPTModel from a checkpoint, and proving from the live model that it holds that checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xcfg.errors import XcfgError
from xcfg_megatron.checkpoint import Tensors
from xcfg_megatron.mapping import Parameter
from xcfg_torch.sections import section_digests, tensor_digest

if TYPE_CHECKING:
    import torch


def fill(model: Any, found: Sequence[Parameter], tensors: Tensors, *, rank: int, ranks: int) -> None:
    """Copy this tensor-parallel rank's part of every tensor into ``model``, cast to its parameters' dtype.

    Raises XcfgError where the parameters of the model are not those of the mapping, each once.
    """
    import torch

    live = dict(model.named_parameters())
    if unlike := sorted(set(live) ^ {parameter.name for parameter in found}):
        raise XcfgError(f"the mapping and GPTModel differ in {', '.join(unlike[:3])}", where="megatron")
    with torch.no_grad():
        for parameter in found:
            part = parameter.layout.local([tensors.read(name) for name in parameter.tensors], rank, ranks)
            if part.shape != live[parameter.name].shape:
                shapes = f"{tuple(live[parameter.name].shape)}, the mapping gives {tuple(part.shape)}"
                raise XcfgError(f"{parameter.name} of GPTModel has shape {shapes}", where="megatron")
            live[parameter.name].copy_(part)


def tensor_digests(model: Any, found: Iterable[Parameter], tensors: Tensors, group: Any) -> dict[str, tuple[str, str]]:
    """(section, SHA-256) of every checkpoint tensor of this stage, reassembled from the live parts of all ranks.

    The digest is over the bytes in the checkpoint's own dtype: that of the file's tensor wherever the model's dtype
    keeps every value. Every rank of the tensor-parallel ``group`` must call it. Raises XcfgError, naming the tensor,
    where the reassembled one is not the file's.
    """
    live, proven = dict(model.named_parameters()), {}
    for parameter in found:
        own = live[parameter.name].detach()
        try:
            reassembled = parameter.layout.sources(_gathered(own, group))
        except ValueError as reason:
            raise XcfgError(f"{parameter.name}: {reason}", where="megatron") from reason
        for name, tensor in zip(parameter.tensors, reassembled, strict=True):
            stored = tensors.read(name)
            wanted, there = (tensor_digest(item.to(own.dtype).to(stored.dtype)) for item in (stored, tensor.cpu()))
            if wanted != there:
                message = f"{name}, reassembled from {parameter.name} of all ranks, is not the checkpoint's"
                raise XcfgError(message, where="megatron")
            proven[name] = (parameter.section, there)
    return proven


def stage_digests(stages: Iterable[Mapping[str, tuple[str, str]]]) -> dict[str, str]:
    """One SHA-256 a section, of the tensors of all stages. Raises XcfgError where two stages differ in one."""
    tensors: dict[str, tuple[str, str]] = {}
    for stage in stages:
        for name, proven in stage.items():
            if tensors.setdefault(name, proven) != proven:
                raise XcfgError(f"two pipeline stages hold different values of {name}", where="megatron")
    return section_digests(tensors)


def _gathered(own: torch.Tensor, group: Any) -> list[torch.Tensor]:
    import torch
    import torch.distributed as dist

    parts = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, own.contiguous(), group=group)
    return parts

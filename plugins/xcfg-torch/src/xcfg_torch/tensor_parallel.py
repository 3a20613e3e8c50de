"""A Hugging Face model split over the ranks by its own tensor-parallel plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcfg.errors import UnsupportedError
from xcfg.plugin import ScorerSpec
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.head import FULL_VOCABULARY, VOCAB_PARALLEL, HeadShare
from xcfg_torch.live import Live
from xcfg_torch.loading import load_model
from xcfg_torch.scorer import dressed
from xcfg_torch.tp_limits import degree_fault

if TYPE_CHECKING:
    import torch

WHERE = "training.tensor_parallel_size"
GATHERED = ("colwise_gather_output", "colwise_rep")
"""Styles of an output head whose logits every rank gets whole; transformers 5 has the first name, 4 the second."""


def open_split(spec: ScorerSpec, device: torch.device) -> Live:
    """A hooked model of which every rank has its part. Engine settings: those of ``torch``, and ``tp_layout``.

    Raises UnsupportedError where the model has no plan or its sizes do not divide by the ranks.
    """
    fault = degree_fault(spec.checkpoint, spec.world_size)
    if fault:
        raise UnsupportedError(fault, where=WHERE)
    layout = spec.engine.get("tp_layout") or FULL_VOCABULARY
    model = load_model(
        spec.checkpoint,
        dtype=spec.engine.get("dtype"),
        attention=spec.engine.get("attention"),
        trust_remote_code=spec.trust_remote_code,
        device=device,
        distributed=_plan(spec, layout) if spec.world_size > 1 else None,
    )
    if spec.world_size > 1 and not split_parameters(model):
        raise UnsupportedError(f"{type(model).__name__} brings no plan (base_model_tp_plan)", where=WHERE)
    live = dressed(model, spec, device)
    _watch_sums(model, live.seen.summed)
    if layout == VOCAB_PARALLEL:
        live.head = _head_share(model)
    return live


def _plan(spec: ScorerSpec, layout: str) -> Any:
    """The model's own plan; for ``vocab-parallel`` the output head keeps its columns to its rank."""
    from transformers.distributed.configuration_utils import DistributedConfig

    own: Any = "auto"
    if layout == VOCAB_PARALLEL:
        own = dict.fromkeys(_gathered_heads(spec), "colwise")
    return DistributedConfig(tp_size=spec.world_size, tp_plan=own)


def _gathered_heads(spec: ScorerSpec) -> list[str]:
    import transformers

    config = transformers.AutoConfig.from_pretrained(
        spec.checkpoint, trust_remote_code=spec.trust_remote_code, local_files_only=True
    )
    kind = transformers.AutoModelForCausalLM._model_mapping.get(type(config), None)
    heads = [name for name, style in (getattr(kind, "_tp_plan", None) or {}).items() if style in GATHERED]
    if not heads:
        raise UnsupportedError(
            f"the plan of {type(config).__name__} names no output head whose columns could stay on their ranks",
            where="logp.tp_layout",
        )
    return heads


def split_parameters(model: Any) -> dict[str, Any]:
    """Parameters that lie in parts on the ranks, by name."""
    from torch.distributed.tensor import DTensor

    return {name: parameter for name, parameter in model.named_parameters() if isinstance(parameter, DTensor)}


def _watch_sums(model: Any, dtypes: set[str]) -> None:
    """Note the dtype that each layer cut by its input's columns hands on: the plan sums its output over the ranks."""
    from torch.distributed.tensor import Shard

    def after(_module: Any, _args: tuple[Any, ...], output: Any) -> None:
        dtypes.add(dtype_name(output.dtype))

    for module in model.modules():
        placements = getattr(getattr(module, "weight", None), "placements", ())
        if tuple(placements) == (Shard(1),):
            module.register_forward_hook(after)


def _head_share(model: Any) -> HeadShare:
    """The share of this rank, from the live output head; every rank must make the call."""
    import torch
    import torch.distributed as dist

    weight = model.get_output_embeddings().weight
    if not hasattr(weight, "to_local"):
        raise UnsupportedError("the output head is whole on this rank", where="logp.tp_layout")
    group = weight.device_mesh.get_group()
    own = torch.tensor([weight.to_local().shape[0]])
    counts = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(counts, own, group=group)
    ends = torch.cat(counts).cumsum(0).tolist()
    return HeadShare(
        group=group,
        rank=dist.get_rank(group),
        bounds=tuple(zip([0, *ends[:-1]], ends, strict=True)),
        vocab_size=int(weight.shape[0]),
        layout=VOCAB_PARALLEL,
    )

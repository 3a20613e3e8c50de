"""What Megatron really did, read from its parallel state, its process groups and its live modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_megatron.importing import megatron, transformer_engine_fault
from xcfg_megatron.layers import LOCAL, TRANSFORMER_ENGINE
from xcfg_megatron.live import MegatronLive
from xcfg_megatron.parallel import groups
from xcfg_torch.head import FULL_VOCABULARY, VOCAB_PARALLEL
from xcfg_torch.readback import SHARED, Observed
from xcfg_torch.readback_scored import NOT_SCORED
from xcfg_torch.readback_scored import context_parallel_size as whole_rows

_OPTIMIZED = "the model's parameters are distributed over data-parallel ranks"


def parallel_degrees() -> dict[str, int]:
    """Ranks of the modes ``tp``, ``pp`` and ``dp``, from the process groups."""
    return {name: group.size() for name, group in groups().items() if name != "cp"}


def tensor_parallel_size(live: MegatronLive) -> Observed:
    """Ranks that share each layer: in parallel state, in the group, and in the rows of the linear layers."""
    shape = live.shape
    rows = (shape.heads + 2 * shape.groups) * shape.head_dim
    parts = {
        rows / module.weight.shape[0]
        for name, module in live.gpt.named_modules()
        if name.endswith("self_attention.linear_qkv")
    }
    state = megatron("parallel_state").get_tensor_model_parallel_world_size()
    return _agreed({"parallel state": state, "group": groups()["tp"].size()}, {"rows of the layers": parts})


def pipeline_parallel_size(live: MegatronLive) -> Observed:
    """Stages: in parallel state, in the group, and in the layers this rank has."""
    state = megatron("parallel_state").get_pipeline_model_parallel_world_size()
    stages = {live.shape.layers / len(live.gpt.decoder.layers)}
    return _agreed({"parallel state": state, "group": groups()["pp"].size()}, {"layers": stages})


def context_parallel_size(live: MegatronLive) -> Observed:
    """Ranks that share the columns of a row: in parallel state, in the group, and in the width of each pass."""
    whole = whole_rows(live)
    if isinstance(whole, Unobservable):
        return whole
    state = megatron("parallel_state").get_context_parallel_world_size()
    return _agreed({"parallel state": state, "group": groups()["cp"].size(), "widths": whole}, {})


def world_size(_live: MegatronLive) -> Observed:
    """Ranks of the process group, where those of all modes multiply to them."""
    import torch.distributed as dist

    product = 1
    for group in groups().values():
        product *= group.size()
    return _agreed({"process group": dist.get_world_size(), "all modes": product}, {})


def collective(_live: MegatronLive) -> Observed:
    """Library of the ranks' process groups."""
    import torch.distributed as dist

    found = {dist.get_backend(), *(dist.get_backend(group) for group in groups().values())}
    return found.pop() if len(found) == 1 else Unobservable(f"the groups of ranks use {sorted(found)}")


def sharding(live: MegatronLive) -> Observed:
    """``unsharded`` where every linear layer has the whole of the part that it says is this rank's."""
    for name, module in live.gpt.named_modules():
        weight = getattr(module, "weight", None)
        rows = getattr(module, "output_size_per_partition", None)
        if weight is not None and (hasattr(weight, "device_mesh") or (rows is not None and len(weight) != rows)):
            return Unobservable(f"{name}: {_OPTIMIZED}")
    return "unsharded"


def compiled(live: MegatronLive) -> Observed:
    """False where no module was compiled."""
    found = [name for name, module in live.model.named_modules() if module._compiled_call_impl is not None]
    return Unobservable(f"{found[0]} was compiled") if found else False


def attention(live: MegatronLive) -> Observed:
    """The attention that torch was seen to run; ``transformer_engine`` where every layer attends through its module."""
    kinds = {type(layer.self_attention.core_attention).__name__ for layer in live.gpt.decoder.layers}
    if kinds == {"TEDotProductAttention"} and not live.seen.attention:
        return TRANSFORMER_ENGINE if live.seen.forwards else NOT_SCORED
    return SHARED["training.attention_backend"](live)


def reduce_dtype(live: MegatronLive) -> Observed:
    """None where no rank shares a layer; else that of the sums of row-parallel layers."""
    if groups()["tp"].size() == 1:
        return None
    return "+".join(sorted(live.seen.summed)) or NOT_SCORED


def vocab_padding(live: MegatronLive) -> Observed:
    """The multiple in force, where the rows of embedding and head over all ranks bear it out."""
    padded = -(-live.shape.vocabulary // live.multiple) * live.multiple
    ranks = groups()["tp"].size()
    ends = [
        getattr(live.gpt, "output_layer", None),
        getattr(getattr(live.gpt, "embedding", None), "word_embeddings", None),
    ]
    rows = {ranks * len(end.weight) for end in ends if end is not None and end.weight is not None}
    rows |= {live.head.bounds[-1][1]} if live.head else set()
    return live.multiple if rows <= {padded} else Unobservable(f"embedding and head have {sorted(rows)} rows")


def tp_layout(live: MegatronLive) -> Observed:
    """What the operator got: every column of the normaliser, or this rank's with the group of the ranks."""
    seen = live.seen.operator_columns
    if not seen or live.kernel is None:
        return NOT_SCORED
    if live.kernel.sharding is None:
        return FULL_VOCABULARY if seen == {live.columns} else Unobservable(f"whole rows of {sorted(seen)} columns")
    own = live.head is not None and seen == {live.head.columns}
    return VOCAB_PARALLEL if own else Unobservable(f"parts of {sorted(seen)} columns")


def padded_vocab_in_normaliser(live: MegatronLive) -> Observed:
    """Whether the kernel that scored was to count more columns than the checkpoint has tokens.

    Whole rows tell by themselves; of a part the kernel was told how many of all columns count.
    """
    seen = live.seen.operator_columns
    if not seen or live.kernel is None:
        return NOT_SCORED
    told = live.kernel.sharding
    counted = {int(told["vocab_size"])} if told is not None else set(seen)
    real = live.shape.vocabulary
    padded = live.head.bounds[-1][1] if live.head else real
    if counted not in ({real}, {padded}):
        return Unobservable(f"the normaliser has {sorted(counted)} columns, of {real} tokens in {padded} rows")
    return counted != {real}


def layer_spec(live: MegatronLive) -> Observed:
    """``local`` or ``transformer_engine``, from the classes of the layers' linear modules."""
    kinds = {type(module).__name__ for module in live.gpt.decoder.modules() if type(module).__name__.endswith("Linear")}
    engines = {name.startswith("TE") for name in kinds}
    if len(engines) != 1:
        return Unobservable(f"the layers have linear modules of {sorted(kinds)}")
    return TRANSFORMER_ENGINE if engines.pop() else LOCAL


def megatron_facts(live: MegatronLive) -> dict[str, Json]:
    """Versions, groups, stage and stand-ins, and what of the checkpoint all ranks together were proven to hold."""
    import torch.distributed as dist

    return {
        "megatron_core": version("megatron-core"),
        "transformer_engine": transformer_engine_fault() or version("transformer_engine"),
        "layer_spec": str(layer_spec(live)),
        "substitutions": live.substitutions(),
        "collective_backend": dist.get_backend(),
        "ranks": {name: dist.get_process_group_ranks(group) for name, group in groups().items()},
        "layers": [layer.layer_number - 1 for layer in live.gpt.decoder.layers],
        "local_elements": sum(parameter.numel() for parameter in live.gpt.parameters()),
        "head_rows": [list(bound) for bound in live.head.bounds] if live.head else [[0, live.shape.vocabulary]],
        "sections": live.sections,
    }


def _agreed(one: Mapping[str, int], several: Mapping[str, set[float]]) -> Observed:
    """The number that all sources give."""
    values = set(one.values()).union(*several.values()) if several else set(one.values())
    return int(values.pop()) if len(values) == 1 else Unobservable(f"sizes differ: {dict(one)} {dict(several)}")


READERS: Mapping[str, Callable[[Any], Observed]] = {
    **{
        name: SHARED[name]
        for name in (
            "training.compute_dtype",
            "training.output_dtype",
            "batch.size",
            "batch.micro_size",
            "layout.padding_side",
            "layout.packing",
            "layout.position_ids",
            "execution.threads",
            "logp.backend",
            "logp.deterministic",
            "logp.reduction_policy",
            "torch.device",
        )
    },
    "training.attention_backend": attention,
    "training.compile": compiled,
    "training.world_size": world_size,
    "training.sharding": sharding,
    "training.tensor_parallel_size": tensor_parallel_size,
    "training.context_parallel_size": context_parallel_size,
    "training.reduce_dtype": reduce_dtype,
    "execution.collective": collective,
    "layout.vocab_padding": vocab_padding,
    "logp.tp_layout": tp_layout,
    "megatron.pipeline_parallel_size": pipeline_parallel_size,
    "megatron.layer_spec": layer_spec,
    "megatron.padded_vocab_in_normaliser": padded_vocab_in_normaliser,
}
"""Readers of every knob of the scorer ``megatron``."""

"""Values in force, read from the live modules and from what their hooks saw in the last scoring call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_torch.compiling import decoder_layers, is_compiled
from xcfg_torch.dtypes import lowest_precision
from xcfg_torch.live import Live
from xcfg_torch.readback_route import OWN, chunked_prefill, kv_cache_dtype, prefix_cache, scoring_path
from xcfg_torch.readback_scored import (
    NOT_SCORED,
    Observed,
    backend,
    batch_size,
    context_parallel_size,
    deterministic,
    micro_size,
    packing,
    padding_side,
    position_ids,
    reduction_policy,
    tp_layout,
    vocab_padding,
)


def compute_dtype(live: Live) -> Observed:
    """Dtype of the activations that entered linear layers."""
    return lowest_precision(live.seen.activations) if live.seen.activations else NOT_SCORED


def output_dtype(live: Live) -> Observed:
    """Dtype of the logits the model handed on."""
    return "+".join(sorted(live.seen.logits)) or NOT_SCORED


def attention(live: Live) -> Observed:
    """The attention implementation that ran."""
    return "+".join(sorted(live.seen.attention)) or Unobservable("no attention call that torch can show was seen")


def threads(_live: Live) -> Observed:
    """Intra-operation threads of this process."""
    import torch

    return torch.get_num_threads()


def device(live: Live) -> Observed:
    """Device kind that holds the parameters."""
    return "+".join(sorted({parameter.device.type for parameter in live.model.parameters()}))


def single_process(live: Live) -> Observed:
    """1 where no parameter is distributed over ranks."""
    import torch

    if any(hasattr(parameter, "device_mesh") for parameter in live.model.parameters()):
        return Unobservable("a parameter is distributed, which this scorer never does")
    grouped = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if grouped else 1


def unsharded(live: Live) -> Observed:
    """``unsharded`` where every parameter is whole."""
    return "unsharded" if single_process(live) == 1 else Unobservable("a parameter is distributed over ranks")


def eager(live: Live) -> Observed:
    """True where no module was compiled."""
    compiled = any(is_compiled(module) for module in live.model.modules())
    return not compiled and not type(live.model).__name__.startswith("Optimized")


def compiled(live: Live) -> Observed:
    """True where calls of every decoder layer go to a compiled graph, False where no module was compiled."""
    if eager(live):
        return False
    layers = {is_compiled(layer) for layer in decoder_layers(live.model)}
    return True if layers == {True} else Unobservable("some modules of the model are compiled and some layers are not")


def quantization(live: Live) -> Observed:
    """The method by which the model was loaded quantised; ``none`` without one."""
    quantizer = getattr(live.model, "hf_quantizer", None)
    return "none" if quantizer is None else str(quantizer.quantization_config.quant_method.value)


def _raw(value: Json) -> Callable[[Live], Observed]:
    def read(live: Live) -> Observed:
        if live.seen.raw is None:
            return NOT_SCORED
        return value if live.seen.raw else Unobservable("the operator did not get the model's own logits")

    return read


SHARED: Mapping[str, Callable[[Any], Observed]] = {
    "training.compute_dtype": compute_dtype,
    "training.attention_backend": attention,
    "training.output_dtype": output_dtype,
    "training.compile": compiled,
    "training.context_parallel_size": context_parallel_size,
    "batch.size": batch_size,
    "batch.micro_size": micro_size,
    "layout.padding_side": padding_side,
    "layout.packing": packing,
    "layout.position_ids": position_ids,
    "layout.vocab_padding": vocab_padding,
    "execution.threads": threads,
    "logp.backend": backend,
    "logp.deterministic": deterministic,
    "logp.tp_layout": tp_layout,
    "logp.reduction_policy": reduction_policy,
    "torch.device": device,
}
"""Readers of the knobs that every torch training scorer has."""

SINGLE: Mapping[str, Callable[[Any], Observed]] = {
    **SHARED,
    **OWN,
    "training.sharding": unsharded,
    "training.world_size": single_process,
    "training.tensor_parallel_size": single_process,
    "rollout.dtype": compute_dtype,
    "rollout.attention_backend": attention,
    "rollout.tensor_parallel_size": single_process,
    "rollout.enforce_eager": eager,
    "rollout.quantization": quantization,
    "rollout.chunked_prefill": chunked_prefill,
    "torch.rollout_prefill_chunk": OWN["torch.prefill_chunk"],
    "rollout.scoring_path": scoring_path,
    "rollout.kv_cache_dtype": kv_cache_dtype,
    "execution.prefix_cache": prefix_cache,
    "sampling.logprobs_mode": _raw("raw_logprobs"),
    "sampling.temperature": _raw(1.0),
    "sampling.top_p": _raw(1.0),
    "sampling.top_k": _raw(0),
}
"""Readers of the scorer ``torch``, in either role."""

"""A GPTModel of a checkpoint's geometry, for one rank, filled and proven."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from xcfg.errors import UnsupportedError
from xcfg_megatron.checkpoint import Tensors, check_tensors, open_tensors
from xcfg_megatron.geometry import (
    Geometry,
    padded_vocabulary,
    pipeline_fault,
    tensor_parallel_fault,
    vocabulary_fault,
)
from xcfg_megatron.importing import megatron
from xcfg_megatron.layers import TRANSFORMER_ENGINE, layer_spec, placed_rotary
from xcfg_megatron.mapping import parameters, tensors, whole
from xcfg_megatron.parallel import Degrees, groups
from xcfg_megatron.pipeline import Pipeline
from xcfg_megatron.weights import fill, stage_digests, tensor_digests

if TYPE_CHECKING:
    import torch


@frozen(kw_only=True, eq=False)
class Built:
    """A model in evaluation mode, and the SHA-256 of every section of the checkpoint that all ranks hold."""

    gpt: Any
    sections: dict[str, str]


def check_ranks(shape: Geometry, degrees: Degrees, multiple: int, device: str) -> None:
    """Raise UnsupportedError where ranks or stages cannot share this model."""
    faults = {
        "training.tensor_parallel_size": tensor_parallel_fault(shape, degrees.tensor, device),
        "megatron.pipeline_parallel_size": pipeline_fault(shape, degrees.pipeline),
        "layout.vocab_padding": vocabulary_fault(shape, multiple=multiple, ranks=degrees.tensor),
    }
    for where, fault in faults.items():
        if fault:
            raise UnsupportedError(fault, where=where)


def stored_tensors(folder: Path, shape: Geometry) -> Tensors:
    """The tensors of a checkpoint. Raises InvalidInput unless they are what its ``config.json`` calls for."""
    stored = open_tensors(folder)
    wanted = parameters(shape, whole(shape), padded=shape.vocabulary)
    check_tensors(stored, tensors(wanted), shape, str(folder))
    return stored


def build(
    stored: Tensors,
    shape: Geometry,
    pipeline: Pipeline,
    *,
    tensor_parallel: int,
    multiple: int,
    kind: str,
    dtype: torch.dtype,
    device: torch.device,
) -> Built:
    """The part of this rank, filled and proven. Every rank must call it. Raises XcfgError where the proof fails."""
    padded = padded_vocabulary(shape.vocabulary, multiple)
    gpt = _model(shape, pipeline, tensor_parallel, padded, kind, dtype)
    gpt = gpt.to(device=device, dtype=dtype).requires_grad_(False).eval()
    gpt.rotary_pos_emb.inv_freq = gpt.rotary_pos_emb.inv_freq.to(device)
    found = parameters(
        shape,
        pipeline.holds(shape.layers),
        padded=padded,
        fused=kind == TRANSFORMER_ENGINE,
        shared=pipeline.stages == 1,
    )
    group = groups()["tp"]
    fill(gpt, found, stored, rank=group.rank(), ranks=group.size())
    proven = tensor_digests(gpt, found, stored, group)
    return Built(gpt=gpt, sections=stage_digests(pipeline.from_all(proven)))


def _model(
    shape: Geometry, pipeline: Pipeline, tensor_parallel: int, padded: int, kind: str, dtype: torch.dtype
) -> Any:
    """Parameters hold whatever the memory held; norms are ones.

    Megatron keeps a second copy of a tied embedding in the last of several stages, and fills it through CUDA. Here the
    copy is filled from the checkpoint, so that stage is built with a head of its own.
    """
    import torch

    config = megatron("transformer.transformer_config").TransformerConfig(
        num_layers=shape.layers,
        hidden_size=shape.hidden,
        ffn_hidden_size=shape.ffn,
        num_attention_heads=shape.heads,
        num_query_groups=shape.groups,
        kv_channels=shape.head_dim,
        normalization="RMSNorm",
        layernorm_epsilon=shape.epsilon,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        add_bias_linear=False,
        add_qkv_bias=shape.qkv_bias,
        qk_layernorm=shape.qk_norm,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        tensor_model_parallel_size=tensor_parallel,
        pipeline_model_parallel_size=pipeline.stages,
        pipeline_dtype=dtype,
        params_dtype=dtype,
        use_cpu_initialization=True,
        perform_initialization=False,
    )
    gpt = megatron("models.gpt.gpt_model").GPTModel(
        config,
        layer_spec(shape, kind),
        vocab_size=padded,
        max_sequence_length=shape.positions,
        pre_process=pipeline.first,
        post_process=pipeline.last,
        share_embeddings_and_output_weights=shape.tied and pipeline.stages == 1,
        position_embedding_type="rope",
        rotary_base=shape.rope_base,
    )
    gpt.rotary_pos_emb = placed_rotary()(
        kv_channels=shape.head_dim, rotary_percent=1.0, rotary_base=shape.rope_base, use_cpu_initialization=True
    )
    return gpt

"""What a Hugging Face configuration says of a model that Megatron's GPTModel can be, and how ranks may share it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen

from xcfg.errors import InvalidInput, UnsupportedError

QKV_BIAS = {"Qwen3ForCausalLM": False, "Qwen2ForCausalLM": True, "LlamaForCausalLM": False}
"""Architectures that are mapped, and whether query, key and value have a bias."""
_FULL = "full_attention"


@frozen(kw_only=True)
class Geometry:
    """Sizes of a dense decoder with RMS norms, rotary positions and a gated SiLU MLP."""

    architecture: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    groups: int
    head_dim: int
    vocabulary: int
    positions: int
    tied: bool
    qk_norm: bool
    qkv_bias: bool
    epsilon: float
    rope_base: float


def read_config(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """Transformers' configuration of the directory. Raises InvalidInput where there is none."""
    import transformers

    if not folder.is_dir():
        raise InvalidInput("no model directory here", where=str(folder), hint="give the folder with config.json")
    try:
        return transformers.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=trust_remote_code
        )
    except (OSError, ValueError) as error:
        raise InvalidInput(f"transformers cannot read config.json: {error}", where=str(folder)) from error


def geometry(config: Any) -> Geometry:
    """The sizes. Raises UnsupportedError for a model that GPTModel would silently compute as another one."""
    (name, *others) = config.architectures or ("none",)
    if others or name not in QKV_BIAS:
        known = ", ".join(sorted(QKV_BIAS))
        raise UnsupportedError(f"{name} has no mapping into GPTModel; these have: {known}", where="architectures")
    rope = getattr(config, "rope_parameters", None) or {}
    for reason in _faults(config, rope):
        raise UnsupportedError(f"{name}: {reason}", where="config.json")
    return Geometry(
        architecture=name,
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        ffn=config.intermediate_size,
        heads=config.num_attention_heads,
        groups=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        vocabulary=config.vocab_size,
        positions=config.max_position_embeddings,
        tied=bool(config.tie_word_embeddings),
        qk_norm=name == "Qwen3ForCausalLM",
        qkv_bias=QKV_BIAS[name],
        epsilon=config.rms_norm_eps,
        rope_base=float(rope.get("rope_theta") or getattr(config, "rope_theta", None) or 10000.0),
    )


def _faults(config: Any, rope: Any) -> list[str]:
    kinds = set(getattr(config, "layer_types", None) or (_FULL,)) - {_FULL}
    scaling = rope.get("rope_type") or (getattr(config, "rope_scaling", None) or {}).get("rope_type") or "default"
    found = {
        f"layers of {', '.join(sorted(kinds))} are not built": bool(kinds),
        f"rotary positions of type {scaling} are not built": scaling != "default",
        f"the activation {config.hidden_act} is not built": config.hidden_act != "silu",
        "a partial rotary embedding is not built": (rope.get("partial_rotary_factor") or 1.0) != 1.0,
        "biases of attention_bias or mlp_bias are not mapped": bool(
            getattr(config, "attention_bias", False) or getattr(config, "mlp_bias", False)
        ),
        "a quantized checkpoint is not mapped": getattr(config, "quantization_config", None) is not None,
    }
    return [reason for reason, true in found.items() if true]


def tensor_parallel_fault(shape: Geometry, ranks: int, device: str) -> str:
    """Why ``ranks`` tensor-parallel ranks on devices of this type cannot share the layers; empty where they can.

    The rules are Megatron's own: query heads in equal parts; key-value heads in equal parts or, on CUDA, each on
    equally many ranks.
    """
    if shape.heads % ranks:
        return f"num_attention_heads ({shape.heads}) must be a multiple of tensor_model_parallel_size ({ranks})"
    if shape.groups % ranks and ranks % shape.groups:
        return f"num_query_groups ({shape.groups}) must be a multiple or divisor of {ranks} tensor-parallel ranks"
    if shape.groups < ranks and device != "cuda":
        return f"Megatron gathers the {shape.groups} key-value heads that {ranks} ranks share through CUDA alone"
    return f"intermediate_size ({shape.ffn}) must be a multiple of {ranks}" if shape.ffn % ranks else ""


def pipeline_fault(shape: Geometry, stages: int) -> str:
    """Why ``stages`` pipeline stages cannot share the layers; empty where they can."""
    return f"{shape.layers} layers cannot be split into {stages} equal stages" if shape.layers % stages else ""


def padded_vocabulary(vocabulary: int, multiple: int) -> int:
    """Rows of embedding and head: the vocabulary up to the next multiple of ``multiple``."""
    return -(-vocabulary // multiple) * multiple


def vocabulary_fault(shape: Geometry, *, multiple: int, ranks: int) -> str:
    """Why ``ranks`` tensor-parallel ranks cannot share the padded vocabulary; empty where they can."""
    padded = padded_vocabulary(shape.vocabulary, multiple)
    if not padded % ranks:
        return ""
    return (
        f"{padded} rows of the output head are no multiple of {ranks} tensor-parallel ranks: set layout.vocab_padding "
        f"to a multiple of {ranks} (Megatron's own default is {128 * ranks})"
    )

"""Models that cannot be split over tensor-parallel ranks, refused before anything is split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcfg.errors import UnsupportedError
from xcfg.model.json import Json
from xcfg_torch.compiling import decoder_layers
from xcfg_torch.semantics import text_config, vocab_size

WHERE = "training.tensor_parallel_size"
COLUMNS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
ROWS = ("self_attn.o_proj", "mlp.down_proj")
"""Linear layers of a decoder layer that are split by their outputs and by their inputs."""

_SIZES = {
    "num_attention_heads": "attention heads",
    "num_key_value_heads": "key-value heads",
    "intermediate_size": "columns of the MLP",
    "vocab_size": "rows of the vocabulary",
}


def size_fault(config: Mapping[str, Json], ranks: int) -> str:
    """Why a model does not divide by the ranks, from the content of its config.json; empty where it does."""
    found: Any = config.get("text_config") or config
    uneven = [
        f"{found[name]} {words}"
        for name, words in _SIZES.items()
        if isinstance(found.get(name), int) and found[name] % ranks
    ]
    return f"{', '.join(uneven)} cannot be divided evenly between {ranks} ranks" if uneven else ""


def check_sizes(model: Any, ranks: int) -> None:
    """Raise UnsupportedError where heads, MLP or vocabulary do not divide by the ranks."""
    if fault := size_fault({**text_config(model).to_dict(), "vocab_size": vocab_size(model)}, ranks):
        raise UnsupportedError(fault, where=WHERE)


def check_layers(model: Any) -> None:
    """Raise UnsupportedError for a decoder layer that is not the seven projections and norms of whole vectors or heads.

    Split otherwise, a router, a packed projection or a norm over all heads would silently become another model.
    """
    fault = "" if model.get_output_embeddings() is not None else "it has no output head of its own"
    for layer in decoder_layers(model):
        fault = fault or _layer_fault(layer, int(text_config(model).hidden_size), _head_dim(model))
    if fault:
        raise UnsupportedError(f"{type(model).__name__} cannot be split over ranks: {fault}", where=WHERE)


def _layer_fault(layer: Any, width: int, head: int) -> str:
    split = (*COLUMNS, *ROWS)
    parameters = {name: tuple(parameter.shape) for name, parameter in layer.named_parameters()}
    missing = [name for name in split if f"{name}.weight" not in parameters]
    if missing:
        return f"{type(layer).__name__} has no {missing[0]}"
    rest = {name: shape for name, shape in parameters.items() if name.rpartition(".")[0] not in split}
    odd = [name for name, shape in rest.items() if shape != ((head,) if _in_block(name) else (width,))]
    return f"{type(layer).__name__} has a parameter {odd[0]} that no rank could hold a part of" if odd else ""


def _in_block(name: str) -> bool:
    return name.startswith(("self_attn.", "mlp."))


def _head_dim(model: Any) -> int:
    config = text_config(model)
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)

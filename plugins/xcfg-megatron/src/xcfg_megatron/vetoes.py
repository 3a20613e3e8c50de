"""Combinations of knobs that Megatron has no meaning for, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json
from xcfg_megatron.parallel import Degrees, ranks_fault


def fault(knobs: Mapping[str, Json]) -> str:
    """Why these knobs of a side cannot go together; empty where they can."""
    return _ranks(knobs) or _layout(knobs) or _padding(knobs)


def _ranks(knobs: Mapping[str, Json]) -> str:
    ranks = knobs.get("training.world_size")
    degrees = Degrees(
        tensor=_size(knobs, "training.tensor_parallel_size"), pipeline=_size(knobs, "megatron.pipeline_parallel_size")
    )
    if isinstance(ranks, int) and ranks % degrees.peers:
        return f"training.world_size: {ranks_fault(ranks, degrees)}"
    return ""


def _layout(knobs: Mapping[str, Json]) -> str:
    if knobs.get("logp.tp_layout") == "vocab-parallel" and _size(knobs, "training.tensor_parallel_size") == 1:
        return "logp.tp_layout: the only rank of training.tensor_parallel_size: 1 has the full vocabulary"
    return ""


def _padding(knobs: Mapping[str, Json]) -> str:
    if knobs.get("megatron.layer_spec") == "transformer_engine" and knobs.get("layout.padding_side") == "left":
        return "layout.padding_side: Transformer Engine's causal attention takes no mask of padding on the left"
    if knobs.get("megatron.padded_vocab_in_normaliser") is True and knobs.get("layout.vocab_padding") == 1:
        return "megatron.padded_vocab_in_normaliser: layout.vocab_padding: 1 adds no row that could be in it"
    return ""


def _size(knobs: Mapping[str, Json], name: str) -> int:
    value = knobs.get(name)
    return value if isinstance(value, int) else 1

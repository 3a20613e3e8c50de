"""What is read of a model directory before an engine is built: its limits, and the memory its KV cache takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from xcfg.errors import InvalidInput
from xcfg.model.codec import load_json
from xcfg.model.json import Json

FULL_SEQUENCES = 16
"""Sequences of the full length that the KV cache is made to hold, memory permitting."""

MEMORY_SHARE = 4
"""At most one part in this many of the memory now available goes into the KV caches of all workers."""

_LONGEST_BLOCK = 256
_DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}


def read_config(folder: Path) -> Mapping[str, Json]:
    """The language model's part of ``config.json``. Raises InvalidInput where there is no readable one."""
    config = _document(folder)
    return config.get("text_config") or config


def quantised_as(folder: Path) -> str | None:
    """The method by which the checkpoint's weights are quantised, as ``config.json`` names it; None without one.

    Raises InvalidInput where there is no readable one.
    """
    return quantisation_entry(folder).get("quant_method")


def quantisation_entry(folder: Path) -> Mapping[str, Any]:
    """What ``config.json`` says of the quantisation of the weights; empty where it says nothing.

    Raises InvalidInput where there is no readable one.
    """
    document = _document(folder)
    return document.get("quantization_config") or document.get("compression_config") or {}


def _document(folder: Path) -> Mapping[str, Json]:
    path = folder / "config.json"
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"no model directory here: {error}", where=str(folder)) from error
    config = load_json(text, where=str(path))
    if not isinstance(config, dict):
        raise InvalidInput("config.json holds no object", where=str(path))
    return config


def tensor_parallel_reason(config: Mapping[str, Json], ranks: int) -> str | None:
    """Why the model's attention heads cannot be dealt to ``ranks`` workers; None where they can.

    Key-value heads are dealt evenly, or each is held by equally many workers.
    """
    heads, shared = _number(config, "num_attention_heads"), _kv_heads(config)
    if heads % ranks:
        return f"the model's {heads} attention heads cannot be dealt evenly to {ranks} workers"
    if shared % ranks and ranks % shared:
        return f"the model's {shared} key-value heads and {ranks} workers do not divide one another"
    return None


def length_reason(config: Mapping[str, Json], length: int | None) -> str | None:
    """Why sequences of ``length`` tokens are beyond the model; None where they are not. None is the model's limit."""
    limit = _limit(config)
    return None if length is None or length <= limit else f"the model has {limit} positions, fewer than {length}"


def kv_cache_bytes(
    config: Mapping[str, Json], *, dtype: str, ranks: int, length: int | None, available: int | None = None
) -> int:
    """Bytes of KV cache a worker is given.

    Room for :data:`FULL_SEQUENCES` sequences of ``length`` tokens (None: the model's limit), less where that exceeds
    the share of ``available`` memory (bytes; None: what is free now), never less than one sequence. Raises
    InvalidInput where the configuration does not say how large a token's keys and values are.
    """
    sequence = _token_bytes(config, dtype) * _rounded(length or _limit(config)) // min(ranks, _kv_heads(config))
    free = psutil.virtual_memory().available if available is None else available
    return max(sequence, min(FULL_SEQUENCES * sequence, free // MEMORY_SHARE // ranks))


def _token_bytes(config: Mapping[str, Json], dtype: str) -> int:
    heads = _number(config, "num_attention_heads")
    size = config.get("head_dim") or _number(config, "hidden_size") // heads
    return 2 * _number(config, "num_hidden_layers") * _kv_heads(config) * int(size) * _DTYPE_BYTES[dtype]


def _kv_heads(config: Mapping[str, Json]) -> int:
    return int(config.get("num_key_value_heads") or _number(config, "num_attention_heads"))


def _limit(config: Mapping[str, Json]) -> int:
    return _number(config, "max_position_embeddings")


def _rounded(tokens: int) -> int:
    """Blocks are whole, and one more may be held back by the engine."""
    return (tokens // _LONGEST_BLOCK + 2) * _LONGEST_BLOCK


def _number(config: Mapping[str, Json], name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or value < 1:
        raise InvalidInput(f"config.json gives no {name}, which the size of the KV cache depends on", where=name)
    return value

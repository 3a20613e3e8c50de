"""Degrees of tensor parallelism that a checkpoint's configuration does not allow; imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from xcfg.model.json import Json

SPLIT = ("num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size")
"""What Hugging Face's plans split evenly over the ranks: whole heads, columns of the MLP, rows of the head."""


def degree_fault(folder: Path, size: int) -> str:
    """Why ``size`` ranks cannot split the model in ``folder``; empty where they can or config.json is unreadable.

    A folder that cannot be read is told of by whoever loads it.
    """
    if size == 1:
        return ""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    sizes = _sizes(config)
    for name in SPLIT:
        if name in sizes and sizes[name] % size:
            return f"{size} ranks cannot split {name} = {sizes[name]} evenly, and a plan of Hugging Face splits it so"
    return ""


def _sizes(config: Mapping[str, Json]) -> dict[str, int]:
    inner = config.get("text_config")
    text = inner if isinstance(inner, dict) else config
    return {name: text[name] for name in SPLIT if isinstance(text.get(name), int)}

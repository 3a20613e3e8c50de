"""Whether every layer of a model attends to all columns before it."""

from __future__ import annotations

from typing import Any

from xcfg_torch.semantics import text_config

FULL = "full_attention"


def full_attention_fault(model: Any) -> str:
    """Which layers do something else, as a sentence; empty where every layer has full causal attention."""
    config = text_config(model)
    kinds = set(getattr(config, "layer_types", None) or ()) or _kind_of_all(config)
    others = sorted(kinds - {FULL})
    return f"{type(model).__name__} has layers of {', '.join(others)}" if others else ""


def _kind_of_all(config: Any) -> set[str]:
    """The kind of all layers of a configuration that does not list them."""
    return {"sliding_attention"} if getattr(config, "sliding_window", None) else {FULL}

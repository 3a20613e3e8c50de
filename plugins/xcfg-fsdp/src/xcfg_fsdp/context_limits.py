"""Models whose columns cannot be shared between ranks, refused before anything is scored."""

from __future__ import annotations

from typing import Any

from xcfg.errors import UnsupportedError
from xcfg_torch.semantics import text_config

WHERE = "training.context_parallel_size"
FULL = "full_attention"


def check_model(model: Any) -> None:
    """Raise UnsupportedError where a layer does not attend to all columns before it.

    Gathered keys make every layer's attention full: sliding windows, recurrences and convolutions over columns would
    silently become other models.
    """
    config = text_config(model)
    kinds = set(getattr(config, "layer_types", None) or ()) or _kind_of_all(config)
    if kinds != {FULL}:
        raise UnsupportedError(
            f"{type(model).__name__} has layers of {', '.join(sorted(kinds - {FULL}))}, and only full causal attention "
            "can be split over ranks",
            where=WHERE,
        )


def check_calls(model: Any, calls: int) -> None:
    """Raise UnsupportedError where a forward pass did not gather once a layer: some attention saw own keys only."""
    layers = int(text_config(model).num_hidden_layers)
    if calls != layers:
        raise UnsupportedError(
            f"{type(model).__name__} gathered keys in {calls} calls and has {layers} layers: it does not take its "
            "attention from transformers' registry",
            where=WHERE,
        )


def _kind_of_all(config: Any) -> set[str]:
    """The kind of all layers of a configuration that does not list them."""
    return {"sliding_attention"} if getattr(config, "sliding_window", None) else {FULL}

"""Models whose columns cannot be shared between ranks, refused before anything is scored."""

from __future__ import annotations

from typing import Any

from xcfg.errors import UnsupportedError
from xcfg_torch.full_attention import full_attention_fault
from xcfg_torch.semantics import text_config

WHERE = "training.context_parallel_size"


def check_model(model: Any) -> None:
    """Raise UnsupportedError where a layer does not attend to all columns before it.

    Gathered keys make every layer's attention full: sliding windows, recurrences and convolutions over columns would
    silently become other models.
    """
    if fault := full_attention_fault(model):
        raise UnsupportedError(f"{fault}, and only full causal attention can be split over ranks", where=WHERE)


def check_calls(model: Any, calls: int) -> None:
    """Raise UnsupportedError where a forward pass did not gather once a layer: some attention saw own keys only."""
    layers = int(text_config(model).num_hidden_layers)
    if calls != layers:
        raise UnsupportedError(
            f"{type(model).__name__} gathered keys in {calls} calls and has {layers} layers: it does not take its "
            "attention from transformers' registry",
            where=WHERE,
        )

"""The handle of an open DeepSpeed engine."""

from __future__ import annotations

from typing import Any

from attrs import Factory, define

from xcfg_deepspeed.partition import whole_shape
from xcfg_torch.live import Live
from xcfg_torch.semantics import text_config


class Called:
    """Calls go through the engine, as training's do; everything else is its Hugging Face model's."""

    def __init__(self, engine: Any) -> None:
        """The engine holds the model as its ``module``."""
        self.engine = engine

    def __call__(self, **inputs: Any) -> Any:
        """The engine's forward pass."""
        return self.engine(**inputs)

    def __getattr__(self, name: str) -> Any:
        """Attributes of the model."""
        return getattr(self.engine.module, name)


@define(kw_only=True)
class DeepspeedLive(Live):
    """``engine`` is DeepSpeed's own object, ``elements`` those of the model as it was loaded, ``communication`` what
    the ranks meet over, ``carried`` what carried sums over tensor-parallel ranks.
    """

    engine: Any
    elements: int
    communication: Any
    carried: set[str] = Factory(set)

    @property
    def columns(self) -> int:
        """Rows of the output head, of which a rank may hold a flat piece or every row in part."""
        head = self.model.get_output_embeddings()
        return whole_shape(head.weight)[0] if head is not None else int(text_config(self.model).vocab_size)

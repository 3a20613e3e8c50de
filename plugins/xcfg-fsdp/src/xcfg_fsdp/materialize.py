"""Applies knobs to the scorer ``fsdp``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_fsdp.readback import READERS
from xcfg_torch.materialize import ENGINE_KEYS, TorchMaterializer


class FsdpMaterializer(TorchMaterializer):
    """Materializer of every knob of the scorer ``fsdp``: settings that are read before the model is wrapped."""

    engine_keys: ClassVar[Mapping[str, str]] = {
        **ENGINE_KEYS,
        "training.sharding": "sharding",
        "training.world_size": "world_size",
        "training.reduce_dtype": "reduce_dtype",
        "fsdp.master_dtype": "master_dtype",
    }
    fixed: ClassVar[Mapping[str, tuple[Json, ...]]] = {}
    readers: ClassVar[Mapping[str, Callable[[Any], Json | Unobservable]]] = READERS

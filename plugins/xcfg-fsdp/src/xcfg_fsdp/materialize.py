"""Applies knobs to the scorer ``fsdp``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from xcfg.model.capability import Capability, Unobservable, Unsupported
from xcfg.model.json import Json
from xcfg_fsdp.readback import READERS
from xcfg_torch.materialize import ENGINE_KEYS, TorchMaterializer
from xcfg_torch.shared import SHARED_ONLY, Only


class FsdpMaterializer(TorchMaterializer):
    """Materializer of every knob of the scorer ``fsdp``: settings that are read before the model is wrapped."""

    engine_keys: ClassVar[Mapping[str, str]] = {
        **ENGINE_KEYS,
        "training.sharding": "sharding",
        "training.world_size": "world_size",
        "training.context_parallel_size": "context_parallel",
        "training.reduce_dtype": "reduce_dtype",
        "execution.collective": "collective",
        "fsdp.master_dtype": "master_dtype",
    }
    only: ClassVar[Mapping[str, Only]] = SHARED_ONLY
    readers: ClassVar[Mapping[str, Callable[[Any], Json | Unobservable]]] = READERS

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Unsupported besides for a library of collectives that cannot carry tensors of the ranks' device."""
        if knob == "execution.collective" and value == "nccl":
            import torch

            if not torch.cuda.is_available() or spec.get("knobs", {}).get("torch.device") == "cpu":
                return Unsupported("nccl carries tensors of CUDA devices only, and the ranks compute on CPUs")
        return super().probe(knob, value, spec)

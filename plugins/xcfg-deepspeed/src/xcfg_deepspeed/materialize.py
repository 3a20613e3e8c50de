"""Applies knobs to the scorer ``deepspeed``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from xcfg.model.capability import Capability, Unobservable, Unsupported
from xcfg.model.json import Json
from xcfg_deepspeed.knobs import ONLY
from xcfg_deepspeed.readback import READERS
from xcfg_torch.materialize import ENGINE_KEYS, TorchMaterializer
from xcfg_torch.shared import Only


class DeepspeedMaterializer(TorchMaterializer):
    """Materializer of every knob of the scorer ``deepspeed``: settings that are read before the engine is built."""

    engine_keys: ClassVar[Mapping[str, str]] = {
        **ENGINE_KEYS,
        "training.sharding": "sharding",
        "training.world_size": "world_size",
        "training.tensor_parallel_size": "tensor_parallel",
        "execution.collective": "collective",
        "deepspeed.zero_stage": "zero_stage",
        "deepspeed.init_inference": "init_inference",
    }
    only: ClassVar[Mapping[str, Only]] = ONLY
    readers: ClassVar[Mapping[str, Callable[[Any], Json | Unobservable]]] = READERS

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Unsupported besides for a library of collectives that cannot carry tensors of the ranks' device."""
        if knob == "execution.collective" and value == "nccl":
            import torch

            if not torch.cuda.is_available() or spec.get("knobs", {}).get("torch.device") == "cpu":
                return Unsupported("nccl carries tensors of CUDA devices only, and the ranks compute on CPUs")
        return super().probe(knob, value, spec)

"""Applies knobs to the scorer ``fsdp``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from xcfg.model.capability import Capability, Unobservable, Unsupported
from xcfg.model.json import Json
from xcfg_fsdp.materializers import ONLY
from xcfg_fsdp.readback import READERS
from xcfg_fsdp.tensor_limits import size_fault
from xcfg_torch.materialize import ENGINE_KEYS, TorchMaterializer
from xcfg_torch.shared import Only

COMMON_KEYS: Mapping[str, str] = {
    **ENGINE_KEYS,
    "training.sharding": "sharding",
    "training.world_size": "world_size",
    "training.reduce_dtype": "reduce_dtype",
    "execution.collective": "collective",
    "fsdp.master_dtype": "master_dtype",
    "fsdp.cpu_offload": "cpu_offload",
}
"""Engine settings that both scorers of this plugin have."""


class ShardedMaterializer(TorchMaterializer):
    """What the materializers of both scorers refuse on this machine."""

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Unsupported besides for a library of collectives that cannot carry tensors of the ranks' device."""
        if knob == "execution.collective" and value == "nccl":
            import torch

            if not torch.cuda.is_available() or spec.get("knobs", {}).get("torch.device") == "cpu":
                return Unsupported("nccl carries tensors of CUDA devices only, and the ranks compute on CPUs")
        return super().probe(knob, value, spec)


class FsdpMaterializer(ShardedMaterializer):
    """Materializer of every knob of the scorer ``fsdp``: settings that are read before the model is wrapped."""

    engine_keys: ClassVar[Mapping[str, str]] = {
        **COMMON_KEYS,
        "training.tensor_parallel_size": "tensor_parallel",
        "training.context_parallel_size": "context_parallel",
        "logp.tp_layout": "tp_layout",
        "fsdp.reshard_after_forward": "reshard_after_forward",
        "fsdp.context_layout": "context_layout",
    }
    only: ClassVar[Mapping[str, Only]] = ONLY
    readers: ClassVar[Mapping[str, Callable[[Any], Json | Unobservable]]] = READERS

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Unsupported besides for a checkpoint whose heads, MLP or vocabulary do not divide by the ranks of a layer."""
        if knob == "training.tensor_parallel_size" and isinstance(value, int) and value > 1 and spec.get("checkpoint"):
            config = Path(str(spec["checkpoint"])) / "config.json"
            fault = size_fault(json.loads(config.read_text(encoding="utf-8")), value) if config.is_file() else ""
            if fault:
                return Unsupported(fault)
        return super().probe(knob, value, spec)

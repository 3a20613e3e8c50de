"""Applies knobs to the scorer ``fsdp1``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from xcfg.model.capability import Capability, Unobservable, Unsupported
from xcfg.model.json import Json
from xcfg_fsdp.flat.readback import READERS
from xcfg_fsdp.materialize import COMMON_KEYS, ShardedMaterializer
from xcfg_fsdp.materializers import FLAT_ONLY
from xcfg_torch.shared import Only


class Fsdp1Materializer(ShardedMaterializer):
    """Materializer of every knob of the scorer ``fsdp1``: settings that are read before the model is wrapped."""

    engine_keys: ClassVar[Mapping[str, str]] = {
        **COMMON_KEYS,
        "fsdp.strategy": "strategy",
        "fsdp.buffer_dtype": "buffer_dtype",
    }
    only: ClassVar[Mapping[str, Only]] = FLAT_ONLY
    readers: ClassVar[Mapping[str, Callable[[Any], Json | Unobservable]]] = READERS

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Unsupported besides for shards offloaded to a host without a CUDA device, which pin their memory."""
        if knob == "fsdp.cpu_offload" and value is True:
            import torch

            if not torch.cuda.is_available() or spec.get("knobs", {}).get("torch.device") == "cpu":
                return Unsupported("FSDP1 pins the memory of what it offloads, and the ranks have no CUDA device")
        return super().probe(knob, value, spec)

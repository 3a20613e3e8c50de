"""Applies knobs to the scorer ``torch-tp``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from xcfg.model.capability import Capability, Unobservable, Unsupported
from xcfg.model.json import Json
from xcfg_torch.materialize import ENGINE_KEYS, TorchMaterializer
from xcfg_torch.shared import Only
from xcfg_torch.tp_limits import degree_fault
from xcfg_torch.tp_materializers import ONLY
from xcfg_torch.tp_readback import READERS


class TensorParallelMaterializer(TorchMaterializer):
    """Materializer of every knob of the scorer ``torch-tp``."""

    engine_keys: ClassVar[Mapping[str, str]] = {
        **ENGINE_KEYS,
        "training.tensor_parallel_size": "tensor_parallel",
        "execution.collective": "collective",
        "logp.tp_layout": "tp_layout",
    }
    only: ClassVar[Mapping[str, Only]] = ONLY
    readers: ClassVar[Mapping[str, Callable[[Any], Json | Unobservable]]] = READERS

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Unsupported besides for ranks that cannot split the checkpoint, and where the ranks cannot meet as asked."""
        if knob == "training.tensor_parallel_size" and spec.get("checkpoint"):
            fault = degree_fault(Path(spec["checkpoint"]), int(value))
            if fault:
                return Unsupported(fault)
        if fault := _place_fault(knob, value, spec):
            return Unsupported(fault)
        return super().probe(knob, value, spec)


def _place_fault(knob: str, value: Json, spec: Mapping[str, Json]) -> str:
    """Transformers splits a model over the accelerators of the machine wherever it has any."""
    if (knob, value) not in (("execution.collective", "nccl"), ("torch.device", "cpu")):
        return ""
    import torch

    there = torch.cuda.is_available()
    if value == "cpu":
        return "transformers splits a model over the CUDA devices of a machine that has them" if there else ""
    on_cpu = not there or spec.get("knobs", {}).get("torch.device") == "cpu"
    return "nccl carries tensors of CUDA devices only, and the ranks compute on CPUs" if on_cpu else ""

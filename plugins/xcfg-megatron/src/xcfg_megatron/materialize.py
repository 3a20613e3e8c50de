"""Applies knobs to the scorer ``megatron``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from xcfg.errors import XcfgError
from xcfg.model.capability import Capability, Unobservable, Unsupported
from xcfg.model.json import Json
from xcfg_megatron.geometry import geometry, pipeline_fault, read_config, tensor_parallel_fault, vocabulary_fault
from xcfg_megatron.knobs import ONLY
from xcfg_megatron.layers import layer_spec_fault
from xcfg_megatron.readback import READERS
from xcfg_torch.materialize import TorchMaterializer
from xcfg_torch.shared import Only


class MegatronMaterializer(TorchMaterializer):
    """Materializer of every knob of the scorer ``megatron``: settings that are read before the model is built."""

    engine_keys: ClassVar[Mapping[str, str]] = {
        "training.compute_dtype": "dtype",
        "training.output_dtype": "output_dtype",
        "training.tensor_parallel_size": "tensor_parallel",
        "execution.collective": "collective",
        "layout.vocab_padding": "vocab_padding",
        "logp.tp_layout": "tp_layout",
        "megatron.pipeline_parallel_size": "pipeline_parallel",
        "megatron.layer_spec": "layer_spec",
        "megatron.padded_vocab_in_normaliser": "padded_vocab",
        "torch.device": "device",
    }
    only: ClassVar[Mapping[str, Only]] = ONLY
    readers: ClassVar[Mapping[str, Callable[[Any], Json | Unobservable]]] = READERS

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Unsupported besides for ranks that cannot share the checkpoint's model, and for a device they do not have."""
        fault = _device_fault(knob, value, spec) or _model_fault(knob, value, spec)
        return Unsupported(fault) if fault else super().probe(knob, value, spec)


def _device_fault(knob: str, value: Json, spec: Mapping[str, Json]) -> str:
    if knob not in ("execution.collective", "megatron.layer_spec"):
        return ""
    device = _device(spec)
    if knob == "execution.collective":
        nccl = value == "nccl" and device == "cpu"
        return "nccl carries tensors of CUDA devices only, and the ranks compute on CPUs" if nccl else ""
    return layer_spec_fault(str(value), device)


def _device(spec: Mapping[str, Json]) -> str:
    """The type of device the ranks will have."""
    import torch

    asked: str | None = spec.get("knobs", {}).get("torch.device")
    return asked or ("cuda" if torch.cuda.is_available() else "cpu")


def _model_fault(knob: str, value: Json, spec: Mapping[str, Json]) -> str:
    """What the checkpoint's sizes forbid; a checkpoint that cannot be read is told of when it is opened."""
    sized = ("training.tensor_parallel_size", "megatron.pipeline_parallel_size", "layout.vocab_padding")
    if knob not in sized or not spec.get("checkpoint"):
        return ""
    try:
        shape = geometry(read_config(Path(spec["checkpoint"])))
    except XcfgError:
        return ""
    if knob == "training.tensor_parallel_size":
        return tensor_parallel_fault(shape, int(value), _device(spec))
    if knob == "megatron.pipeline_parallel_size":
        return pipeline_fault(shape, int(value))
    ranks = spec.get("knobs", {}).get("training.tensor_parallel_size")
    return vocabulary_fault(shape, multiple=int(value), ranks=int(ranks or 1))

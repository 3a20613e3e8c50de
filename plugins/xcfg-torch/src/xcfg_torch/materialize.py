"""Applies knobs to the torch scorers: each is one entry in the draft of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from xcfg.model.capability import Capability, Supported, Unobservable, Unsupported
from xcfg.model.json import Json
from xcfg.plugin import Settings
from xcfg_torch.materializers import ONLY
from xcfg_torch.readback import SINGLE
from xcfg_torch.sdpa_kernels import ON_CPU
from xcfg_torch.shared import PACKED_BY_OWN_MASK, Only

ENGINE_KEYS: Mapping[str, str] = {
    "training.compute_dtype": "dtype",
    "training.attention_backend": "attention",
    "training.output_dtype": "output_dtype",
    "training.compile": "compile",
    "rollout.dtype": "dtype",
    "rollout.attention_backend": "attention",
    "rollout.chunked_prefill": "chunked_prefill",
    "torch.device": "device",
    "torch.head_dtype": "head_dtype",
    "torch.norm_kernel": "norm_kernel",
}
REQUEST_KEYS: Mapping[str, str] = {
    "batch.size": "batch_size",
    "batch.micro_size": "micro_size",
    "layout.padding_side": "padding_side",
    "layout.position_ids": "position_ids",
    "layout.packing": "packing",
    "logp.deterministic": "deterministic",
    "rollout.scoring_path": "scoring_path",
    "torch.forward": "forward",
    "torch.prefill_chunk": "prefill_chunk",
    "torch.rollout_prefill_chunk": "prefill_chunk",
    "torch.sdpa_kernel": "sdpa_kernel",
}
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


class TorchMaterializer:
    """Materializer of every knob of the scorer ``torch``; other torch scorers subclass it with their own tables.

    ``only`` lists the knobs that cannot be anything else here: nothing is written for them.
    """

    engine_keys: ClassVar[Mapping[str, str]] = ENGINE_KEYS
    request_keys: ClassVar[Mapping[str, str]] = REQUEST_KEYS
    only: ClassVar[Mapping[str, Only]] = {**PACKED_BY_OWN_MASK, **ONLY}
    readers: ClassVar[Mapping[str, Callable[[Any], Json | Unobservable]]] = SINGLE

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Unsupported for a value this scorer never has, and for CUDA on a machine without it."""
        fault = self._fault(knob, value) or _device_fault(knob, value, spec)
        return Unsupported(fault) if fault else Supported()

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Write ``value`` into the draft and return it. Raises ValueError for a value this scorer never has."""
        fault = self._fault(knob, value)
        if fault:
            raise ValueError(fault)
        if knob == "execution.threads":
            settings.env.update(dict.fromkeys(THREAD_VARIABLES, str(value)))
        elif knob in self.engine_keys:
            settings.engine[self.engine_keys[knob]] = value
        elif knob in self.request_keys:
            settings.request[self.request_keys[knob]] = value
        return value

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """The value in force, from the live modules."""
        return self.readers[knob](live)

    def _fault(self, knob: str, value: Json) -> str:
        if knob not in self.readers:
            return f"{knob} is not a knob of this scorer"
        only = self.only.get(knob)
        if only is None or any(value is item or (value == item and type(value) is type(item)) for item in only.values):
            return ""
        allowed = " or ".join(repr(item) for item in only.values)
        return f"{knob} can only be {allowed} here, not {value!r}: {only.reason}"


def _device_fault(knob: str, value: Json, spec: Mapping[str, Json]) -> str:
    """Why this machine cannot do it: CUDA without a device, or a kernel of torch's attention that CPUs have not."""
    if (knob, value) != ("torch.device", "cuda") and (knob != "torch.sdpa_kernel" or value in (None, *ON_CPU)):
        return ""
    import torch

    there = torch.cuda.is_available()
    if knob == "torch.device":
        return "" if there else "torch sees no CUDA device on this machine"
    on_cpu = not there or spec.get("knobs", {}).get("torch.device") == "cpu"
    return (
        f"torch has the attention kernel {value} on CUDA devices only, and this scorer computes on CPUs"
        if on_cpu
        else ""
    )

"""Recording what the sampler is given, on either of vLLM's two model runners."""

from __future__ import annotations

from typing import Any

from xcfg_vllm.meter import Meter
from xcfg_vllm.sampling_values import KNOB_OF_VALUE, VALUES


def watch_sampler(sampler: Any, meter: Meter) -> str:
    """Hook the sampler and say how: ``module`` (Model Runner V1), ``states`` (V2) or ``none`` (values unobservable)."""
    if hasattr(sampler, "register_forward_pre_hook"):
        sampler.register_forward_pre_hook(_before_v1(meter), with_kwargs=True)
        return "module"
    if hasattr(sampler, "sampling_states"):
        sampler.sample = _around_v2(sampler, meter)
        return "states"
    return "none"


def _before_v1(meter: Meter) -> Any:
    """``Sampler.forward(logits, sampling_metadata)``: a value is a tensor [rows], or None where none is in force."""

    def hook(module: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        logits = named.get("logits", args[0] if args else None)
        metadata = named.get("sampling_metadata", args[1] if len(args) > 1 else None)
        if logits is None or metadata is None:
            return
        held = {name: getattr(metadata, name, None) for name in VALUES}
        values = {name: None if tensor is None else tensor.tolist() for name, tensor in held.items()}
        meter.saw_sampling(logits, values | {"min_p": _min_p(metadata, len(logits))})

    return hook


def _min_p(metadata: Any, rows: int) -> list[float] | None:
    """What vLLM's own logits processor will cut by, per row; None where it will cut nothing."""
    processors = metadata.logitsprocs.argmax_invariant
    found = next((item for item in processors if type(item).__name__ == "MinPLogitsProcessor"), None)
    if found is None or not found.min_p_count:
        return None
    return [found.get_min_p_by_index(row) for row in range(rows)]


def _around_v2(sampler: Any, meter: Meter) -> Any:
    """``Sampler.sample(logits, expanded_idx_mapping, idx_mapping, slots, ...)``: values are per request slot."""
    sample = sampler.sample

    def watched(logits: Any, expanded: Any, mapping: Any, slots: Any, *rest: Any, **named: Any) -> Any:
        states = sampler.sampling_states
        meter.saw_sampling(logits, {name: getattr(states, name).np[slots].tolist() for name in KNOB_OF_VALUE})
        return sample(logits, expanded, mapping, slots, *rest, **named)

    return watched

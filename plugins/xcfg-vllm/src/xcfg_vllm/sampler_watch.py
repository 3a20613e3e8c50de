"""Recording what the sampler is given, on either of vLLM's two model runners."""

from __future__ import annotations

from typing import Any

from xcfg_vllm.meter import Meter
from xcfg_vllm.sampling_values import VALUES


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
        meter.saw_sampling(logits, {name: None if tensor is None else tensor.tolist() for name, tensor in held.items()})

    return hook


def _around_v2(sampler: Any, meter: Meter) -> Any:
    """``Sampler.sample(logits, expanded_idx_mapping, idx_mapping, slots, ...)``: values are per request slot."""
    sample = sampler.sample

    def watched(logits: Any, expanded: Any, mapping: Any, slots: Any, *rest: Any, **named: Any) -> Any:
        states = sampler.sampling_states
        meter.saw_sampling(logits, {name: getattr(states, name).np[slots].tolist() for name in VALUES})
        return sample(logits, expanded, mapping, slots, *rest, **named)

    return watched

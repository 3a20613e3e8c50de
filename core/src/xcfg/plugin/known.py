"""Which distribution would bring an id, for the message when it is not installed."""

from __future__ import annotations

from types import MappingProxyType

from xcfg.plugin.contribution import Key

_PLUGINS = ("torch", "fsdp", "vllm", "megatron", "deepspeed", "kernels")
_IDS: MappingProxyType[Key, str] = MappingProxyType(
    {
        ("executor", "ray"): "xcfg-ray",
        ("executor", "slurm"): "xcfg-slurm",
        **{("scorer", name): f"xcfg-{name}" for name in ("torch", "fsdp", "vllm", "megatron", "deepspeed")},
        ("backend", "selected_logprob/production"): "xcfg-kernels",
        ("backend", "selected_logprob/reference"): "xcfg-kernels",
    }
)


def bringing_distribution(key: Key) -> str:
    """The distribution of this project that brings the id; empty where none does. Knobs go by their prefix."""
    if key in _IDS:
        return _IDS[key]
    prefix = key[1].partition(".")[0]
    return f"xcfg-{prefix}" if key[0] == "knob" and prefix in _PLUGINS else ""

"""Which distribution would bring an id, for the message when it is not installed."""

from __future__ import annotations

from types import MappingProxyType

from xcfg.plugin.contribution import Key

_PLUGINS = ("torch", "fsdp", "vllm", "megatron", "deepspeed", "kernels")
_KERNELS = ("production", "reference", "deterministic")
_IDS: MappingProxyType[Key, str] = MappingProxyType(
    {
        ("executor", "ray"): "xcfg-ray",
        ("executor", "slurm"): "xcfg-slurm",
        **{("scorer", name): f"xcfg-{name}" for name in ("torch", "fsdp", "vllm", "megatron", "deepspeed")},
        ("scorer", "torch-tp"): "xcfg-torch",
        ("scorer", "fsdp1"): "xcfg-fsdp",
        **{("backend", f"selected_logprob/{name}"): "xcfg-kernels" for name in _KERNELS},
        ("backend", "selected_logprob/te"): "xcfg-te",
        ("backend", "selected_logprob/megatron"): "xcfg-megatron",
    }
)


def own_plugins() -> frozenset[str]:
    """The names of the plugins of this project, installed or not."""
    return frozenset({*_PLUGINS, *(name.removeprefix("xcfg-") for name in _IDS.values())})


def bringing_distribution(key: Key) -> str:
    """The distribution of this project that brings the id; empty where none does. Knobs go by their prefix."""
    if key in _IDS:
        return _IDS[key]
    prefix = key[1].partition(".")[0]
    return f"xcfg-{prefix}" if key[0] == "knob" and prefix in _PLUGINS else ""

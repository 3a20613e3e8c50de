"""The two vocabularies for KV cache dtypes: torch's names in experiments, vLLM's own in its settings."""

from __future__ import annotations

_VLLM = {"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2"}
_TORCH = {"fp8": "float8_e4m3fn"} | {theirs: ours for ours, theirs in _VLLM.items()}


def requested_name(dtype: str | None) -> str:
    """What vLLM calls a dtype; ``auto`` for None."""
    return "auto" if dtype is None else _VLLM.get(dtype, dtype)


def observed_name(stored: str, form: str) -> str:
    """Torch's name of what a cache holds: its storage dtype or, where that is raw bytes, the form they are read in."""
    return _TORCH.get(form, form) if stored in ("uint8", "int8") else stored

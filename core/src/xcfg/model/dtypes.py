"""Names of floating-point dtypes: the spellings users and frameworks write, and the normal one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DTYPE_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "fp32": "float32",
        "float": "float32",
        "f32": "float32",
        "bf16": "bfloat16",
        "fp16": "float16",
        "half": "float16",
        "f16": "float16",
    }
)
"""Dtypes that a forward pass can run in."""

FLOAT8_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "fp8": "float8_e4m3fn",
        "fp8_e4m3": "float8_e4m3fn",
        "float8_e4m3": "float8_e4m3fn",
        "fp8_e5m2": "float8_e5m2",
    }
)
"""Dtypes that a tensor may be stored in besides."""


def normal_dtype(name: str) -> str:
    """``bfloat16`` for ``bf16``, ``BF16`` or ``torch.bfloat16``; a name without an alias keeps its own spelling."""
    plain = name.strip().lower().removeprefix("torch.")
    return DTYPE_ALIASES.get(plain) or FLOAT8_ALIASES.get(plain, plain)

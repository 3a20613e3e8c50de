"""What each implementation was written for. Anything else is refused with the reason; none stands in for another."""

from __future__ import annotations

import os
from enum import StrEnum
from importlib.util import find_spec
from shutil import which

import torch

from xcfg.model.capability import Capability, Supported, Unsupported
from xcfg_kernels.descriptors import DTYPES
from xcfg_kernels.reduction import Scheme

OLDEST_CUDA = (8, 0)
"""Compute capability from which Triton has bfloat16 in hardware."""


class Implementation(StrEnum):
    """How one rank's columns are computed. Each gives the same bits under any sharding, and other bits than another."""

    EAGER = "eager"
    COMPILED = "compiled"
    TRITON = "triton"


def probe(implementation: Implementation, scheme: Scheme, device: torch.device, dtype: str) -> Capability:
    """Whether logits of this dtype on this device can be reduced so."""
    if dtype not in DTYPES:
        return Unsupported(f"selected_logprob has no implementation for {dtype} logits")
    if device.type not in ("cpu", "cuda"):
        return Unsupported(f"{implementation} runs on cpu and cuda, not on {device.type}")
    if scheme is Scheme.ORDER_FREE and implementation is not Implementation.EAGER:
        return Unsupported(f"{scheme} is implemented in eager torch only, not {implementation}")
    reason = _REASONS[implementation](device)
    return Unsupported(reason) if reason else Supported()


def _eager(device: torch.device) -> str:
    return ""


def _compiled(device: torch.device) -> str:
    if device.type != "cpu":
        return "the compiled blocks are shown to keep their bits on the CPU only; on CUDA take triton"
    if not any(map(which, ("c++", "g++", "clang++"))):
        return "torch.compile on the CPU needs a C++ compiler, and none is on the path"
    return ""


def _triton(device: torch.device) -> str:
    if find_spec("triton") is None:
        return "triton is not installed"
    if device.type == "cuda":
        found = torch.cuda.get_device_capability(device)
        if found < OLDEST_CUDA:
            return f"triton blocks need compute capability {OLDEST_CUDA[0]}.0, this device has {found[0]}.{found[1]}"
        return ""
    if os.environ.get("TRITON_INTERPRET") != "1":
        return "triton on the CPU is its interpreter: set TRITON_INTERPRET=1 before the process starts"
    import triton.language as tl
    from triton.runtime.interpreter import InterpretedFunction

    from xcfg_kernels.triton_kernels import _partials_kernel

    # Triton's own functions too: they are made when it is imported, which another package may have done earlier
    interpreted = all(isinstance(function, InterpretedFunction) for function in (_partials_kernel, tl.sum))
    return "" if interpreted else "triton was imported before TRITON_INTERPRET=1 was set"


_REASONS = {Implementation.EAGER: _eager, Implementation.COMPILED: _compiled, Implementation.TRITON: _triton}

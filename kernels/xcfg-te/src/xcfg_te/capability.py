"""What the backend can serve here. Anything else is refused with the reason; nothing stands in for it."""

from __future__ import annotations

import os
from importlib.util import find_spec

from xcfg.model.capability import Capability, Supported, Unsupported
from xcfg_te.descriptors import BACKEND, DEVICES, DTYPES
from xcfg_te.source import Missing, folder, launcher, public


def probe(device: str, dtype: str) -> Capability:
    """Whether logits of this dtype on this type of device can be scored."""
    if device not in DEVICES:
        return Unsupported(f"{BACKEND} runs on {' and '.join(DEVICES)}, not on {device}")
    if dtype not in DTYPES:
        return Unsupported(
            f"{BACKEND} takes logits of {' and '.join(DTYPES)}, not {dtype}: Transformer Engine has no more"
        )
    try:
        folder()
        reason = _cpu() if device == "cpu" else _cuda()
    except Missing as missing:
        reason = str(missing)
    return Unsupported(reason) if reason else Supported()


def _cpu() -> str:
    if find_spec("triton") is None:
        return "triton is not installed, and on a CPU Transformer Engine's kernels run in its interpreter"
    if os.environ.get("TRITON_INTERPRET") != "1":
        return (
            "on a CPU the kernels run in Triton's interpreter, which was not chosen before the process started: "
            "set torch.device: cpu in the experiment, or TRITON_INTERPRET=1 for a program of your own"
        )
    from triton.language import sum as of_triton
    from triton.runtime.interpreter import InterpretedFunction

    # Triton's own functions and those of the kernel are each made for the interpreter, or not, when they are imported.
    interpreted = all(
        isinstance(it, InterpretedFunction) for it in (of_triton, launcher().cross_entropy_forward_kernel)
    )
    return "" if interpreted else "triton was imported before TRITON_INTERPRET=1 was set"


def _cuda() -> str:
    import torch

    if not torch.cuda.is_available():
        return "torch sees no CUDA device"
    if os.environ.get("TRITON_INTERPRET") == "1":
        return "TRITON_INTERPRET=1 would interpret the kernels on a CUDA device: set torch.device: cuda"
    public()
    return ""

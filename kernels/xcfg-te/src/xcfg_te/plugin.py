"""Hook implementations of xcfg-te: a descriptor, and the interpreter where the side computes on a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from xcfg.model.case import SideConfig
from xcfg.model.kernel import SELECTED_LOGPROB
from xcfg.model.scorer import KernelBackendDescriptor
from xcfg.plugin import hookimpl
from xcfg_te.descriptors import BACKEND, TE

CUDA_DRIVER = Path("/dev/nvidiactl")


@hookimpl
def xcfg_kernel_backends() -> Sequence[KernelBackendDescriptor]:
    """The backend ``te`` of the operator ``selected_logprob``."""
    return (TE,)


@hookimpl
def xcfg_process_environment(side: SideConfig) -> Mapping[str, str]:
    """Triton's interpreter for a side that scores with ``te`` on a CPU; it has to be chosen before Triton is imported.

    The device is ``torch.device`` where that is set, else a CPU unless this machine has NVIDIA's driver. Where the
    ranks then find another device the backend refuses, so a wrong guess gives no result.
    """
    choice = side.operators.get(SELECTED_LOGPROB)
    if choice is None or choice.backend != BACKEND:
        return {}
    device = side.knobs.get("torch.device") or ("cuda" if CUDA_DRIVER.exists() else "cpu")
    return {"TRITON_INTERPRET": "1"} if device == "cpu" else {}

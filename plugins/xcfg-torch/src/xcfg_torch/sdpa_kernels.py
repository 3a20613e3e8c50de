"""Which of the kernels behind torch's fused attention may run, and which did."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

MATH = "math"
SDPA_KERNELS = (MATH, "flash", "efficient", "cudnn")
ON_CPU = (MATH, "flash")

_BACKENDS = {"math": "MATH", "flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "cudnn": "CUDNN_ATTENTION"}


@contextmanager
def only_kernel(name: str | None) -> Iterator[None]:
    """Within it torch's fused attention runs the kernel called ``name`` or raises; None leaves it its choice."""
    if name is None:
        yield
        return
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(getattr(SDPBackend, _BACKENDS[name])):
        yield


def kernel_of(operations: Collection[str]) -> str:
    """The kernel that dispatched these operations of torch: the one with a name of its own, else the spelt-out one."""
    fused = [name for name in operations if name.startswith("aten::_scaled_dot_product_")]
    if not fused:
        return MATH
    known = (kernel for kernel in SDPA_KERNELS if all(f"_{kernel}_" in name for name in fused))
    return next(known, "+".join(sorted(fused)))


@cache
def watch_dispatch() -> Any:
    """A mode that keeps the names of the operations torch dispatches while it is on."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Dispatched(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.names: set[str] = set()

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.names.add(function.name())
            return function(*args, **(kwargs or {}))

    return Dispatched

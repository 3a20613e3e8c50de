"""The backend: loads the one artifact it is given. Imported in the child process only."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attrs import frozen

from xcfg.model.capability import Capability, Supported, Unsupported
from xcfg.model.kernel import BoundKernel, KernelRequest
from xcfg.plugin.loaded import loaded_digest, loaded_file

if TYPE_CHECKING:
    import torch


@frozen
class Bound:
    """The operator: ``(logits (N, V) float32, targets (N,) int64) -> (N,) float32`` in nats."""

    function: Any

    def __call__(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Logprobs of ``targets``, on the CPU."""
        import torch

        rows, columns = logits.shape
        logits, targets = logits.contiguous(), targets.contiguous()
        found = torch.empty(rows, dtype=torch.float32)
        self.function(logits.data_ptr(), targets.data_ptr(), rows, columns, found.data_ptr())
        return found


class CKernel:
    """``selected_logprob`` of the library that the request names."""

    def probe(self, request: KernelRequest) -> Capability:
        """Float32 logits on a CPU."""
        if request.operator != "selected_logprob":
            return Unsupported(f"ckernel implements selected_logprob, not {request.operator}")
        if (request.device, request.dtype) != ("cpu", "float32"):
            return Unsupported(f"ckernel takes float32 on a CPU, not {request.dtype} on {request.device}")
        return Supported()

    @contextmanager
    def bind(self, request: KernelRequest) -> Iterator[Bound]:
        """Load the artifact. It stays loaded as long as the process lives. Raises OSError where it cannot be loaded."""
        function = ctypes.CDLL(request.artifact).selected_logprob
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        function.argtypes, function.restype = (pointer, pointer, size, size, pointer), None
        yield Bound(function)

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """The library that the loader says the function is in, by the digest of its file."""
        assert isinstance(bound, Bound)
        concrete = f"selected_logprob of {loaded_file(bound.function).name}"
        return BoundKernel(backend="ckernel", concrete=concrete, build=loaded_digest(bound.function))

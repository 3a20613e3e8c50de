"""Numpy backends of the operator ``selected_logprob``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from xcfg.errors import InvalidInput
from xcfg.model.capability import Capability, Supported, Unsupported
from xcfg.model.kernel import BoundKernel, KernelRequest
from xcfg.testing.language import selected_logprob
from xcfg.testing.rounding import rounded


class ExactBackend:
    """Log-softmax in float64, returned as float32."""

    id: ClassVar[str] = "fake_exact"

    def function(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """The kernel: ``(logits (N, V), targets (N,) int64) -> (N,) float32`` in nats."""
        return selected_logprob

    def probe(self, request: KernelRequest) -> Capability:
        """Only the operator ``selected_logprob`` on a CPU."""
        if request.operator != "selected_logprob":
            return Unsupported(f"{self.id} implements selected_logprob, not {request.operator}")
        if request.device != "cpu":
            return Unsupported(f"{self.id} runs on a CPU, not on {request.device}")
        return Supported()

    @contextmanager
    def bind(self, request: KernelRequest) -> Iterator[Callable[..., Any]]:
        """The function itself; nothing is replaced, nothing has to be undone. Raises InvalidInput."""
        capability = self.probe(request)
        if isinstance(capability, Unsupported):
            raise InvalidInput(capability.reason)
        yield self.function()

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """The function's own name and numpy's version."""
        concrete = f"{bound.__module__}.{getattr(bound, '__qualname__', type(bound).__qualname__)}"
        return BoundKernel(backend=self.id, concrete=concrete, build=f"numpy {np.__version__}")


def coarse_selected_logprob(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Logprobs (N,) float32 rounded to bfloat16: a kernel that stores its result too coarsely."""
    return rounded(selected_logprob(logits, targets), "bfloat16")


class CoarseBackend(ExactBackend):
    """The exact value, rounded to bfloat16."""

    id = "fake_coarse"

    def function(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """The coarse kernel."""
        return coarse_selected_logprob


def poisoned_selected_logprob(logits: Any, targets: Any) -> Any:
    """NaN for every row, of any array library."""
    return targets * float("nan")


class PoisonedBackend(ExactBackend):
    """Nothing but NaN, on any device: shows that a scorer's numbers are those of the backend it was given."""

    id = "fake_poisoned"

    def function(self) -> Callable[[Any, Any], Any]:
        """The poison."""
        return poisoned_selected_logprob

    def probe(self, request: KernelRequest) -> Capability:
        """Everything is supported."""
        return Supported()

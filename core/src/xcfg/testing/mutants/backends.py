"""Wrong kernel backends of ``selected_logprob`` over numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import evolve

from xcfg.model.capability import Capability, Supported
from xcfg.model.kernel import BoundKernel, KernelRequest
from xcfg.plugin.protocols import KernelBackend

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


class BackendMutant:
    """A backend that passes everything on to ``inner``; a subclass spoils one thing."""

    def __init__(self, inner: KernelBackend) -> None:
        """Wrap ``inner``."""
        self.inner = inner

    def probe(self, request: KernelRequest) -> Capability:
        """As the correct one."""
        return self.inner.probe(request)

    @contextmanager
    def bind(self, request: KernelRequest) -> Iterator[Callable[..., Any]]:
        """The correct function, spoilt."""
        with self.inner.bind(request) as bound:
            self._bound = bound
            yield lambda logits, targets: self.spoil(bound, logits, targets)

    def spoil(self, kernel: Kernel, logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """What the correct function gives."""
        return kernel(logits, targets)

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """As the correct one."""
        return self.inner.identify(self._bound)


class BackendNanSwallowed(BackendMutant):
    """Results are never NaN."""

    def spoil(self, kernel: Kernel, logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Replace NaN by 0.0, which reads as probability 1."""
        result = kernel(logits, targets)
        return np.where(np.isnan(result), np.float32(0), result)


class BackendTargetsShifted(BackendMutant):
    """Each row has the next row's target."""

    def spoil(self, kernel: Kernel, logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Rotate the targets."""
        return kernel(logits, np.roll(targets, -1))


class BackendInPlace(BackendMutant):
    """Subtracts the maximum in the engine's own logits."""

    def spoil(self, kernel: Kernel, logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Save memory."""
        if logits.size:
            logits -= logits.max(axis=1, keepdims=True)
        return kernel(logits, targets)


class BackendOverflows(BackendMutant):
    """Exponentiates without subtracting the maximum first."""

    def spoil(self, kernel: Kernel, logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The formula as it stands in a textbook."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            total = np.log(np.exp(logits).sum(axis=1))
        chosen: np.ndarray = logits[np.arange(len(targets)), targets]
        result: np.ndarray = (chosen - total).astype(np.float32)
        return result


class BackendMaskSwallowed(BackendMutant):
    """Columns that are minus infinity are taken for large negative numbers that still count."""

    def spoil(self, kernel: Kernel, logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Replace them by zero."""
        return kernel(np.where(np.isneginf(logits), np.float32(0), logits), targets)


class BackendWide(BackendMutant):
    """Returns float64 where float32 was agreed."""

    def spoil(self, kernel: Kernel, logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Widen."""
        return kernel(logits, targets).astype(np.float64)


class BackendStale(BackendMutant):
    """A binding computes once for each shape and gives that result again."""

    @contextmanager
    def bind(self, request: KernelRequest) -> Iterator[Callable[..., Any]]:
        """The correct function with a cache."""
        cache: dict[tuple[int, ...], np.ndarray] = {}
        with super().bind(request) as bound:
            yield lambda logits, targets: cache.setdefault(logits.shape, bound(logits, targets)).copy()


class BackendUnsteady(BackendMutant):
    """The last bit depends on how often it was called, as with atomic additions."""

    _calls = 0

    def spoil(self, kernel: Kernel, logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Move every result by calls that went before."""
        BackendUnsteady._calls += 1
        result = kernel(logits, targets)
        return result if self._calls % 2 else np.nextafter(result, np.float32(0))


class BackendFallsBack(BackendMutant):
    """Another implementation runs, which it admits, and it was not asked to."""

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """Admit it."""
        return evolve(super().identify(bound), fallback=True)


class BackendUnnamed(BackendMutant):
    """Does not say which build it is."""

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """Leave the build out."""
        return evolve(super().identify(bound), build="")


class BackendTakesAll(BackendMutant):
    """Supports operators that it never heard of."""

    def probe(self, request: KernelRequest) -> Capability:
        """Yes."""
        return Supported()


BACKEND_MUTANTS: tuple[type[BackendMutant], ...] = (
    BackendNanSwallowed,
    BackendTargetsShifted,
    BackendInPlace,
    BackendOverflows,
    BackendMaskSwallowed,
    BackendWide,
    BackendStale,
    BackendUnsteady,
    BackendFallsBack,
    BackendUnnamed,
    BackendTakesAll,
)

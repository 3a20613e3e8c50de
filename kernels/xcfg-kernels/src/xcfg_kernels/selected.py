"""What every backend of ``selected_logprob`` shares: probing, chunking over rows, saying what ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import frozen

from xcfg.model.capability import Capability, Supported, Unsupported
from xcfg.model.json import Json
from xcfg.model.kernel import BoundKernel, KernelRequest
from xcfg_kernels.descriptors import DEVICES, DTYPES, OPERATOR, OPTIONS

if TYPE_CHECKING:
    import torch


@frozen(kw_only=True)
class BoundSelectedLogprob:
    """A bound operator: ``(logits (N, V), targets (N,) int64) -> (N,) float32`` in nats.

    ``rows`` scores one chunk of fp32 rows. Rows do not depend on each other, so ``chunk_rows`` bounds memory and
    changes no bit.
    """

    backend: str
    rows: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    primitives: str
    chunk_rows: int

    def __call__(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Raises ValueError on shapes that do not fit and on a dtype the request did not name."""
        import torch

        if logits.ndim != 2 or targets.shape != logits.shape[:1]:
            shapes = f"{tuple(logits.shape)} and {tuple(targets.shape)}"
            raise ValueError(f"selected_logprob takes logits (N, V) and targets (N,), got {shapes}")
        if str(logits.dtype).removeprefix("torch.") not in DTYPES:
            raise ValueError(f"selected_logprob has no implementation for {logits.dtype} logits")
        scored = torch.empty(targets.shape, dtype=torch.float32, device=logits.device)
        for start in range(0, len(targets), self.chunk_rows):
            part = slice(start, start + self.chunk_rows)
            scored[part] = self.rows(logits[part].float(), targets[part])
        return scored


class SelectedLogprobBackend:
    """Base of the backends; a subclass names itself and computes one chunk."""

    id: ClassVar[str]
    primitives: ClassVar[str]

    def rows(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Logprobs (n,) float32 of ``targets`` (n,) under fp32 ``logits`` (n, V)."""
        raise NotImplementedError

    def probe(self, request: KernelRequest) -> Capability:
        """Unsupported for any operator, device, dtype or option this backend was not written for."""
        if reason := request_fault(self.id, request) or sharding_fault(self.id, request):
            return Unsupported(reason)
        fault = _option_fault(request.options)
        return Unsupported(f"{self.id}: {fault}") if fault else Supported()

    @contextmanager
    def bind(self, request: KernelRequest) -> Iterator[BoundSelectedLogprob]:
        """The operator. Nothing in the process is replaced, so nothing has to be undone. Raises ValueError."""
        capability = self.probe(request)
        if isinstance(capability, Unsupported):
            raise ValueError(capability.reason)
        options = {**OPTIONS, **request.options}
        yield BoundSelectedLogprob(
            backend=self.id, rows=self.rows, primitives=self.primitives, chunk_rows=int(options["chunk_rows"])
        )

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """The function that computes the rows, and the torch build. Raises ValueError on a callable bound elsewhere."""
        import torch

        if not isinstance(bound, BoundSelectedLogprob):
            raise ValueError(f"{bound!r} was not bound by xcfg-kernels")
        function = bound.rows
        concrete = f"{function.__module__}.{function.__qualname__} ({bound.primitives})"
        return BoundKernel(backend=bound.backend, concrete=concrete, build=f"torch {torch.__version__}")


def request_fault(backend: str, request: KernelRequest) -> str:
    """Why no backend of this package serves the request's operator, device, dtype or vocabulary; empty if it does."""
    if request.operator != OPERATOR:
        return f"{backend} implements {OPERATOR}, not {request.operator}"
    if request.device not in DEVICES:
        return f"{backend} runs on {' and '.join(DEVICES)}, not on {request.device}"
    if request.dtype not in DTYPES:
        return f"{backend} takes logits of {', '.join(DTYPES)}, not {request.dtype}"
    return "" if request.vocab_size >= 1 else f"a vocabulary of {request.vocab_size} has no token to score"


def sharding_fault(backend: str, request: KernelRequest) -> str:
    """Why a backend that needs whole rows does not serve the request; empty where it gets them."""
    if request.sharding is None:
        return ""
    return (
        f"{backend} takes whole rows of logits, not one rank's columns: logp.tp_layout = full-vocabulary gathers them"
    )


def _option_fault(options: Mapping[str, Json]) -> str:
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        return f"unknown option {unknown[0]!r}; known: {', '.join(OPTIONS)}"
    rows = options.get("chunk_rows", OPTIONS["chunk_rows"])
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        return f"chunk_rows must be a whole number of at least 1, not {rows!r}"
    return ""

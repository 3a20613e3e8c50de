"""The backend ``te``: Transformer Engine's parallel cross entropy over whole rows or one rank's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attrs import frozen

from xcfg.model.capability import Capability, Unsupported
from xcfg.model.kernel import SELECTED_LOGPROB, BoundKernel, KernelRequest
from xcfg_te.capability import probe
from xcfg_te.descriptors import BACKEND
from xcfg_te.source import KERNELS, PUBLIC, digest, version

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist


@frozen(kw_only=True)
class BoundTransformerEngine:
    """A bound operator: ``(logits (N, V), targets (N,) int64) -> (N,) float32`` in nats, differentiable."""

    device: str
    vocab_size: int

    def __call__(
        self, logits: torch.Tensor, targets: torch.Tensor, group: dist.ProcessGroup | None = None
    ) -> torch.Tensor:
        """With ``group`` the logits are this rank's columns. Raises as :func:`xcfg_te.selected_logprob` does."""
        from xcfg_te.logprob import selected_logprob

        return selected_logprob(logits, targets, group, vocab_size=self.vocab_size)


class TransformerEngine:
    """Has no options."""

    def probe(self, request: KernelRequest) -> Capability:
        """Unsupported for a request this was not written for, and where Transformer Engine cannot be imported."""
        if request.operator != SELECTED_LOGPROB:
            return Unsupported(f"{BACKEND} implements {SELECTED_LOGPROB}, not {request.operator}")
        if request.options:
            return Unsupported(f"{BACKEND} has no options, and {sorted(request.options)[0]!r} is given")
        if request.vocab_size < 1:
            return Unsupported(f"a vocabulary of {request.vocab_size} has no token to score")
        if request.sharding is not None and request.sharding["padded_vocab_size"] != request.vocab_size:
            padding = request.sharding["padded_vocab_size"] - request.vocab_size
            return Unsupported(f"{BACKEND} would give the {padding} columns of padding a probability")
        return probe(request.device, request.dtype)

    @contextmanager
    def bind(self, request: KernelRequest) -> Iterator[BoundTransformerEngine]:
        """The operator. Nothing in the process is replaced, so nothing has to be undone. Raises ValueError."""
        capability = self.probe(request)
        if isinstance(capability, Unsupported):
            raise ValueError(capability.reason)
        yield BoundTransformerEngine(device=request.device, vocab_size=request.vocab_size)

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """The function that computes, and its build: versions, and the digest of its source. Raises ValueError."""
        import torch
        import triton

        if not isinstance(bound, BoundTransformerEngine):
            raise ValueError(f"{bound!r} was not bound by xcfg-te")
        if bound.device == "cpu":
            concrete = f"{KERNELS}.cross_entropy_forward_kernel (Triton's interpreter)"
        else:
            concrete = f"{PUBLIC}.parallel_cross_entropy"
        parts = {"transformer_engine": version(), "source sha256": digest()}
        parts |= {"triton": triton.__version__, "torch": torch.__version__}
        build = ", ".join(f"{name} {value}" for name, value in parts.items())
        return BoundKernel(backend=BACKEND, concrete=concrete, build=build)

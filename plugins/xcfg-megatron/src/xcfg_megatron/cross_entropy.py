"""The backend ``megatron``: Megatron-Core's ``vocab_parallel_cross_entropy`` over whole rows or one rank's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from attrs import frozen

from xcfg.errors import EnvironmentFault, InvalidInput
from xcfg.model.capability import Capability, Supported, Unsupported
from xcfg.model.kernel import SELECTED_LOGPROB, BoundKernel, KernelRequest
from xcfg_megatron.descriptors import BACKEND, DEVICES, DTYPES
from xcfg_megatron.importing import megatron

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

_FUNCTION = "vocab_parallel_cross_entropy"


@frozen(kw_only=True)
class BoundCrossEntropy:
    """A bound operator: ``(logits (N, V), targets (N,) int64) -> (N,) float32`` in nats, differentiable.

    With ``group`` the logits are this rank's equal part of ``vocab_size`` columns.
    """

    backend: str = BACKEND
    vocab_size: int

    def __call__(
        self, logits: torch.Tensor, targets: torch.Tensor, group: dist.ProcessGroup | None = None
    ) -> torch.Tensor:
        """Raises InvalidInput for columns that are not this rank's part, and for a target that is no token.

        Megatron works in place on float32 logits, so those are copied.
        """
        import torch

        among = _alone() if group is None else group
        if logits.ndim != 2 or logits.shape[1] * among.size() != self.vocab_size:
            shape = f"{tuple(logits.shape)} on each of {among.size()} ranks"
            raise InvalidInput(f"{shape} is no equal part of {self.vocab_size} columns", where="logits")
        if bool(((targets < 0) | (targets >= self.vocab_size)).any()):
            raise InvalidInput(f"a target is no token of a vocabulary of {self.vocab_size}", where="targets")
        own = logits.clone() if logits.dtype == torch.float32 else logits
        with _tensor_parallel_group(among):
            loss = getattr(megatron("tensor_parallel.cross_entropy"), _FUNCTION)(own, targets)
        return -loss


class CrossEntropy:
    """Has no options."""

    def probe(self, request: KernelRequest) -> Capability:
        """Unsupported for a request this was not written for, and where Megatron-Core cannot be imported."""
        fault = _fault(request)
        if fault:
            return Unsupported(fault)
        try:
            megatron("tensor_parallel.cross_entropy")
        except EnvironmentFault as reason:
            return Unsupported(str(reason))
        return Supported()

    @contextmanager
    def bind(self, request: KernelRequest) -> Iterator[BoundCrossEntropy]:
        """The operator; the parallel state is another only while it runs. Raises ValueError."""
        capability = self.probe(request)
        if isinstance(capability, Unsupported):
            raise ValueError(capability.reason)
        yield BoundCrossEntropy(vocab_size=request.vocab_size)

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """The function that computes, and the versions it comes from. Raises ValueError."""
        import torch

        if not isinstance(bound, BoundCrossEntropy):
            raise ValueError(f"{bound!r} was not bound by xcfg-megatron")
        function = getattr(megatron("tensor_parallel.cross_entropy"), _FUNCTION)
        build = f"megatron-core {version('megatron-core')}, torch {torch.__version__}"
        return BoundKernel(backend=BACKEND, concrete=f"{function.__module__}.{function.__qualname__}", build=build)


def _fault(request: KernelRequest) -> str:
    if request.operator != SELECTED_LOGPROB:
        return f"{BACKEND} implements {SELECTED_LOGPROB}, not {request.operator}"
    if request.options:
        return f"{BACKEND} has no options, and {sorted(request.options)[0]!r} is given"
    if request.device not in DEVICES:
        return f"{BACKEND} runs on {' and '.join(DEVICES)}, not on {request.device}"
    if request.dtype not in DTYPES:
        return f"{BACKEND} takes logits of {', '.join(DTYPES)}, not {request.dtype}"
    if request.vocab_size < 1:
        return f"a vocabulary of {request.vocab_size} has no token to score"
    return _sharding_fault(request)


def _sharding_fault(request: KernelRequest) -> str:
    """Megatron takes the columns before a rank's to be its rank times its own, and gives every one a probability."""
    if request.sharding is None:
        return ""
    padding = request.sharding["padded_vocab_size"] - request.vocab_size
    if padding:
        return f"{BACKEND} would give the {padding} columns of padding a probability"
    widths = {end - start for start, end in request.sharding["bounds"]}
    return "" if len(widths) == 1 else f"{BACKEND} needs equal parts of the vocabulary, not {sorted(widths)} columns"


@cache
def _alone() -> Any:
    """A group of this process alone, which needs no other process group to be there."""
    import torch.distributed as dist

    return dist.ProcessGroupGloo(dist.HashStore(), 0, 1)


@contextmanager
def _tensor_parallel_group(group: Any) -> Iterator[None]:
    """Megatron's function takes its ranks from the parallel state: there, ``group`` is the tensor-parallel one."""
    state = megatron("parallel_state")
    before = state._TENSOR_MODEL_PARALLEL_GROUP
    state._TENSOR_MODEL_PARALLEL_GROUP = group
    try:
        yield
    finally:
        state._TENSOR_MODEL_PARALLEL_GROUP = before

"""The backend ``deterministic``: :func:`xcfg_kernels.selected_logprob` over whole rows or one rank's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attrs import frozen

from xcfg.errors import InvalidInput
from xcfg.model.capability import Capability, Unsupported
from xcfg.model.json import Json
from xcfg.model.kernel import BoundKernel, KernelRequest
from xcfg_kernels.descriptors import DETERMINISTIC_OPTIONS
from xcfg_kernels.layout import checked_layout
from xcfg_kernels.reduction import ReductionSpec, Scheme
from xcfg_kernels.selected import request_fault
from xcfg_kernels.sharding import ShardingSpec

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

_IMPLEMENTATIONS = ("eager", "compiled", "triton")


@frozen(kw_only=True)
class BoundDeterministic:
    """A bound operator: ``(logits (N, V), targets (N,) int64) -> (N,) float32`` in nats, differentiable.

    With ``sharding`` the logits are this rank's columns and a call needs the ``group`` of the ranks.
    """

    reduction: ReductionSpec
    implementation: str
    width: int
    sharding: ShardingSpec | None = None

    def __call__(
        self, logits: torch.Tensor, targets: torch.Tensor, group: dist.ProcessGroup | None = None
    ) -> torch.Tensor:
        """Raises InvalidInput and UnsupportedError, as :func:`xcfg_kernels.selected_logprob` does."""
        from xcfg_kernels.logprob import selected_logprob

        return selected_logprob(
            logits, targets, self.sharding, group, reduction=self.reduction, implementation=self.implementation
        )


class Deterministic:
    """Options: ``scheme``, ``block`` and ``implementation``; see the descriptor's defaults."""

    id = "deterministic"

    def probe(self, request: KernelRequest) -> Capability:
        """Unsupported for a request, an option or a machine this was not written for."""
        fault = request_fault(self.id, request) or _option_fault(request.options) or _sharding_fault(request)
        if fault:
            return Unsupported(fault)
        import torch

        from xcfg_kernels.capability import Implementation, probe

        options = {**DETERMINISTIC_OPTIONS, **request.options}
        implementation, scheme = Implementation(options["implementation"]), Scheme(options["scheme"])
        return probe(implementation, scheme, torch.device(request.device), request.dtype)

    @contextmanager
    def bind(self, request: KernelRequest) -> Iterator[BoundDeterministic]:
        """The operator. Nothing in the process is replaced, so nothing has to be undone. Raises ValueError."""
        capability = self.probe(request)
        if isinstance(capability, Unsupported):
            raise ValueError(capability.reason)
        options = {**DETERMINISTIC_OPTIONS, **request.options}
        reduction = _reduction(options)
        width = reduction.width(request.vocab_size) if reduction.scheme is Scheme.CANONICAL_BLOCKS else 0
        sharding = None if request.sharding is None else ShardingSpec(**request.sharding)
        implementation = str(options["implementation"])
        yield BoundDeterministic(reduction=reduction, implementation=implementation, width=width, sharding=sharding)

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """Scheme, width of the blocks and implementation, and the builds of what computes them. Raises ValueError."""
        import torch

        if not isinstance(bound, BoundDeterministic):
            raise ValueError(f"{bound!r} was not bound by xcfg-kernels")
        how = f"{bound.reduction.scheme}{f' of {bound.width}' if bound.width else ''}, {bound.implementation}"
        build = f"torch {torch.__version__}"
        if bound.implementation == "triton":
            import triton

            build = f"{build}, triton {triton.__version__}"
        return BoundKernel(backend=self.id, concrete=f"xcfg_kernels.logprob.selected_logprob ({how})", build=build)


def _reduction(options: Mapping[str, Json]) -> ReductionSpec:
    return ReductionSpec(scheme=Scheme(options["scheme"]), block=options["block"])


def _sharding_fault(request: KernelRequest) -> str:
    """Why these shards cannot be reduced so; the bounds of ``canonical_blocks`` are those of a shard's blocks."""
    if request.sharding is None:
        return ""
    try:
        checked_layout(ShardingSpec(**request.sharding), _reduction({**DETERMINISTIC_OPTIONS, **request.options}))
    except InvalidInput as reason:
        return str(reason)
    return ""


def _option_fault(options: Mapping[str, Json]) -> str:
    known = DETERMINISTIC_OPTIONS
    if unknown := sorted(set(options) - set(known)):
        return f"unknown option {unknown[0]!r}; known: {', '.join(known)}"
    chosen = {**known, **options}
    for name, values in (("scheme", tuple(map(str, Scheme))), ("implementation", _IMPLEMENTATIONS)):
        if chosen[name] not in values:
            return f"{name} is one of {', '.join(values)}, not {chosen[name]!r}"
    block = chosen["block"]
    if block is not None and (not isinstance(block, int) or isinstance(block, bool)):
        return f"block must be a whole number of columns or null, not {block!r}"
    try:
        _reduction(chosen)
    except InvalidInput as reason:
        return str(reason)
    return ""

"""The rows ``forward`` and ``gradient``: a backend against float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import torch

from xcfg.model.kernel import KernelRequest
from xcfg.model.operator_check import CheckRequest, CheckRow
from xcfg.model.tolerance import Tolerance
from xcfg_kernels.checking.cases import cases, logits_and_targets, right_gradient, right_logprobs

CLASS = "logprob"
"""The operator class of the contract's tables."""
Bound = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def forward_rows(bound: Bound, request: KernelRequest, asked: CheckRequest) -> Iterator[CheckRow]:
    """A row for each case."""
    for name, logits, targets in cases(request, asked.rows):
        with torch.no_grad():
            found = bound(logits, targets)
        yield _judged("forward", name, request.dtype, found, right_logprobs(logits, targets), asked.contract.forward)


def gradient_rows(bound: Bound, request: KernelRequest, asked: CheckRequest) -> Iterator[CheckRow]:
    """One row: the gradient of a weighted sum of ordinary rows. Not judged where the backend has none."""
    name = "ordinary logits"
    logits, targets = logits_and_targets(request, asked.rows, 4.0, seed=0)
    weights = torch.linspace(-1.0, 1.0, asked.rows, device=logits.device)
    leaf = logits.clone().requires_grad_()
    with torch.enable_grad():
        scored = bound(leaf, targets)
    if not scored.requires_grad:
        yield CheckRow(row="gradient", case=name, dtype=request.dtype, limit="it has no gradient")
        return
    (gradient,) = torch.autograd.grad((scored * weights).sum(), leaf)
    right = right_gradient(logits, targets, weights)
    yield _judged("gradient", name, request.dtype, gradient, right, asked.contract.gradient)


def largest(gaps: torch.Tensor) -> float | None:
    """The largest of at least one difference; None where one is not finite, which no JSON could hold."""
    found = float(gaps.max())
    return found if math.isfinite(found) else None


def _judged(
    row: str,
    name: str,
    dtype: str,
    found: torch.Tensor,
    right: torch.Tensor,
    table: Mapping[str, Mapping[str, Tolerance]],
) -> CheckRow:
    gaps = (found.double() - right).abs()
    worst = largest(gaps)
    limit = table.get(CLASS, {}).get(dtype)
    if limit is None:
        return CheckRow(row=row, case=name, dtype=dtype, worst=worst, limit=f"the contract has no {CLASS} row")
    said = f"{limit.atol:g}" + (f" + {limit.rtol:g} of the value" if limit.rtol else "")
    passed = bool((gaps <= limit.atol + limit.rtol * right.abs()).all())  # NaN is no number within a limit
    return CheckRow(row=row, case=name, dtype=dtype, worst=worst, limit=said, passed=passed)

"""The row ``invariance``: what a row's bits may depend on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from xcfg.model.kernel import KernelRequest
from xcfg.model.operator_check import CheckRequest, CheckRow
from xcfg_kernels.checking.accuracy import Bound, largest
from xcfg_kernels.checking.cases import logits_and_targets

BITWISE = "bitwise"


def invariance_rows(bound: Bound, request: KernelRequest, asked: CheckRequest) -> Iterator[CheckRow]:
    """Each row alone, the rows in another order, beside far larger rows, again, and on one thread."""
    logits, targets = logits_and_targets(request, asked.rows, 4.0, seed=0)
    with torch.no_grad():
        whole = bound(logits, targets)
        alone = [bound(logits[row : row + 1], targets[row : row + 1]) for row in range(asked.rows)]
        yield _judged("batches of 1", torch.cat(alone), whole, asked, request)
        backwards = torch.arange(asked.rows - 1, -1, -1, device=logits.device)
        turned = bound(logits[backwards], targets[backwards])[backwards]
        yield _judged("other order of rows", turned, whole, asked, request)
        louder = torch.cat([logits, logits * 8])
        beside = bound(louder, torch.cat([targets, targets]))[: asked.rows]
        yield _judged("beside larger rows", beside, whole, asked, request)
        yield _judged("run to run", bound(logits, targets), whole, asked, request)
        if request.device == "cpu":
            with _threads(1):
                single = bound(logits, targets)
            with _threads(2):
                double = bound(logits, targets)
            yield _judged("1 and 2 threads", single, double, asked, request)


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _judged(
    name: str, found: torch.Tensor, other: torch.Tensor, asked: CheckRequest, request: KernelRequest
) -> CheckRow:
    limit = asked.contract.invariance.get("forward", "")
    worst = largest((found.double() - other.double()).abs())
    same = torch.equal(found.contiguous().view(torch.int32), other.contiguous().view(torch.int32))
    passed = same if limit == BITWISE else None
    said = limit or "the contract has no invariance row"
    return CheckRow(row="invariance", case=name, dtype=request.dtype, worst=worst, limit=said, passed=passed)

"""Time and memory of one forward pass, in pairs with the production backend."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from itertools import accumulate

import torch

from xcfg.model.kernel import KernelRequest
from xcfg.model.operator_check import CheckCost
from xcfg_kernels.checking.accuracy import Bound
from xcfg_kernels.checking.cases import logits_and_targets

PAIRS = 5

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler of memory announces itself on standard error


def cost(bound: Bound, production: Bound, request: KernelRequest, rows: int) -> CheckCost:
    """Medians of pairs after one that is thrown away; peaks of one pass each."""
    case = logits_and_targets(request, rows, 4.0, seed=0)
    calls = {"own": lambda: bound(*case), "production": lambda: production(*case)}
    for call in calls.values():
        call()
    pairs = [tuple(_seconds(call, request.device) for call in calls.values()) for _ in range(PAIRS)]
    own, usual = (_peak(call, request.device) for call in calls.values())
    return CheckCost(
        dtype=request.dtype,
        seconds=statistics.median(pair[0] for pair in pairs),
        time_ratio=statistics.median(pair[0] / pair[1] for pair in pairs),
        peak_bytes=own,
        memory_ratio=None if own is None or not usual else own / usual,
    )


def _seconds(call: Callable[[], object], device: str) -> float:
    _wait(device)
    began = time.perf_counter()
    call()
    _wait(device)
    return time.perf_counter() - began


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _peak(call: Callable[[], object], device: str) -> int | None:
    """Bytes that torch's allocator holds at the peak of a call beyond those before it; None where it does not tell."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    results = profile.profiler.kineto_results if profile.profiler is not None else None
    if results is None:
        return None
    changes = sorted((event.start_ns(), event.nbytes()) for event in results.events() if event.name() == "[memory]")
    return max(accumulate((change for _, change in changes), initial=0))

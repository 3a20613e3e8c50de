"""A backend of ``selected_logprob`` measured by itself: accuracy, invariance, time and memory."""

from __future__ import annotations

import torch
from attrs import evolve

from xcfg.model.capability import Unsupported
from xcfg.model.kernel import KernelRequest
from xcfg.model.operator_check import CheckReport, CheckRequest
from xcfg.plugin.protocols import KernelBackend
from xcfg.plugin.target import resolve
from xcfg_kernels.checking.accuracy import forward_rows, gradient_rows
from xcfg_kernels.checking.cost import cost
from xcfg_kernels.checking.invariance import invariance_rows
from xcfg_kernels.production import Production


def check(asked: CheckRequest) -> CheckReport:
    """Every dtype that the backend serves on the device, in turn. See :class:`CheckRequest` and :class:`CheckReport`.

    The logits are seeded, so that two machines judge the same numbers. Raises whatever the backend raises.
    """
    backend: KernelBackend = resolve(asked.backend)()
    report = CheckReport()
    for dtype in asked.dtypes:
        request = KernelRequest(
            operator=asked.operator,
            device=asked.device,
            dtype=dtype,
            vocab_size=asked.vocab_size,
            options=asked.options,
        )
        found = backend.probe(request)
        if isinstance(found, Unsupported):
            report = evolve(report, refused={**report.refused, dtype: found.reason})
            continue
        report = _checked(report, backend, request, asked)
    return report


def _checked(report: CheckReport, backend: KernelBackend, request: KernelRequest, asked: CheckRequest) -> CheckReport:
    production = evolve(request, options={})
    with backend.bind(request) as bound, Production().bind(production) as usual:
        rows = [
            *forward_rows(bound, request, asked),
            *gradient_rows(bound, request, asked),
            *invariance_rows(bound, request, asked),
        ]
        with torch.no_grad():
            taken = cost(bound, usual, request, asked.rows)
        return evolve(
            report,
            kernels={**report.kernels, request.dtype: backend.identify(bound)},
            rows=(*report.rows, *rows),
            costs=(*report.costs, taken),
        )

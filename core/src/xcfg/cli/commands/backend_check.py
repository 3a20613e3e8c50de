"""``xcfg backends check ID``: one backend by itself, against float64 and the production backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from xcfg.cli.output import document, emit, json_option, table
from xcfg.cli.session import Session
from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.model.codec import unknown
from xcfg.model.json import Json
from xcfg.model.status import Status
from xcfg.model.tolerance import DEFAULT_CONTRACT

if TYPE_CHECKING:
    from rich.console import Console

    from xcfg.model.operator_check import CheckReport
    from xcfg.model.scorer import KernelBackendDescriptor
    from xcfg.plugin.registry import Registry


def backend_named(registry: Registry, name: str) -> KernelBackendDescriptor:
    """By ``OPERATOR/ID``, or by ``ID`` where one operator alone has it. Raises InvalidInput and PluginError."""
    operator, slash, backend = name.rpartition("/")
    if slash:
        return registry.backend(operator, backend)
    known = registry.backends()
    operators = sorted(of for of, id in known if id == name)
    if len(operators) == 1:
        return registry.backend(operators[0], name)
    if operators:
        raise InvalidInput(f"{name!r} is a backend of {' and '.join(operators)}", hint="name it OPERATOR/ID")
    raise InvalidInput(
        unknown("backend", name, sorted({id for _, id in known})), hint="`xcfg backends list` names them"
    )


def _options(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, Json]:
    from xcfg.model.codec import load_json

    found: dict[str, Json] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", ctx, param)
        try:
            found[name] = load_json(value)
        except InvalidInput:
            found[name] = value  # a word, as in scheme=order_free
    return found


@click.command()
@click.argument("name", metavar="ID")
@click.option("--device", default="cpu", show_default=True, help="Device type of the logits.")
@click.option("--dtype", "dtypes", multiple=True, metavar="DTYPE", help="Dtype of the logits (default: all it takes).")
@click.option("--rows", type=click.IntRange(min=2), default=64, show_default=True, help="Rows of logits.")
@click.option("--vocab-size", type=click.IntRange(min=2), default=32000, show_default=True, help="Columns of logits.")
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", callback=_options, help="An option of the backend."
)
@click.option("--contract", default=DEFAULT_CONTRACT, show_default=True, help="Tolerance contract: an id or a file.")
@json_option
@click.pass_context
def check(
    ctx: click.Context,
    name: str,
    device: str,
    dtypes: tuple[str, ...],
    rows: int,
    vocab_size: int,
    options: Mapping[str, Json],
    contract: str,
    as_json: bool,
) -> None:
    """Measure the backend ID: accuracy, invariance, time and memory."""
    from xcfg.model.operator_check import CheckRequest
    from xcfg.plugin.protocols import BackendCheck
    from xcfg.plugin.target import load_target
    from xcfg.plugin.theirs import theirs

    session: Session = ctx.obj
    registry = session.registry(allow_fake=True)
    found = backend_named(registry, name)
    known = f"{found.operator}/{found.id}"
    if not found.check:
        raise UnsupportedError("its distribution brings no check for it", where=known)
    asked = CheckRequest(
        operator=found.operator,
        backend=found.target,
        dtypes=dtypes or found.dtypes,
        device=device,
        rows=rows,
        vocab_size=vocab_size,
        options=options,
        contract=registry.contract(contract),
    )
    owner = registry.owner("backend", (found.operator, found.id))
    measure: BackendCheck = load_target(found.check, owner)
    with theirs(f"the check of {known}", owner):
        report = measure(asked)
    status = _status(report)
    content = document(
        "backends.check",
        status.value,
        backend=known,
        fake=found.fake,
        device=device,
        shape=[rows, vocab_size],
        contract=asked.contract.ref,
        **_fields(report),
    )
    emit(session, as_json, content, lambda out: _print(out, known, report, status, fake=found.fake))
    ctx.exit(status.exit_code)


def _status(report: CheckReport) -> Status:
    """Fail where a row failed; unsupported where no dtype was served; no threshold where nothing was judged."""
    judged = [row.passed for row in report.rows if row.passed is not None]
    if not report.kernels:
        return Status.UNSUPPORTED
    if not judged:
        return Status.NO_THRESHOLD
    return Status.PASS if all(judged) else Status.FAIL


def _fields(report: CheckReport) -> dict[str, Any]:
    return {name: getattr(report, name) for name in ("kernels", "refused", "rows", "costs")}


_VERDICT = {True: "pass", False: "FAIL", None: "not judged"}


def _print(out: Console, known: str, report: CheckReport, status: Status, *, fake: bool) -> None:
    if fake:
        out.print(f"{known} is a fake for tests: no figure here is of a real kernel")
    for dtype, kernel in report.kernels.items():
        out.print(f"{dtype}: {kernel.concrete}, {kernel.build}", markup=False)
    for dtype, reason in report.refused.items():
        out.print(f"{dtype}: refused: {reason}", markup=False)
    if report.kernels:
        _print_measured(out, report)
    out.print(f"{known}: {status.value}")


def _print_measured(out: Console, report: CheckReport) -> None:
    rows = [
        [row.row, row.case, row.dtype, "" if row.worst is None else f"{row.worst:.2e}", row.limit, _VERDICT[row.passed]]
        for row in report.rows
    ]
    table(out, ["row", "case", "dtype", "worst difference", "limit", "verdict"], rows)
    costs = [
        [
            cost.dtype,
            f"{cost.seconds * 1e3:.2f} ms",
            f"{cost.time_ratio:.2f}",
            "unknown" if cost.peak_bytes is None else f"{cost.peak_bytes / 1e6:.1f} MB",
            "unknown" if cost.memory_ratio is None else f"{cost.memory_ratio:.2f}",
        ]
        for cost in report.costs
    ]
    table(out, ["dtype", "forward", "of production's time", "memory beyond the logits", "of production's"], costs)

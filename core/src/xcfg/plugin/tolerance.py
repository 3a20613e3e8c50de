"""Reading a tolerance contract from its one JSON file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import field, frozen

from xcfg.errors import Fault, InvalidInput
from xcfg.model.codec import PathFault, StructureError, dotted, load_json, structure
from xcfg.model.ids import digest
from xcfg.model.json import Json, freeze
from xcfg.model.tolerance import DTYPE_ORDER, SCHEMA, ContractRef, Tolerance, ToleranceContract

_PRIMARY = "max_abs_dlogp"
_RULE = "value <= threshold"


@frozen(kw_only=True)
class DlogpTable:
    """Limits of the dlogp metrics by dtype, and the ratio interval of ``clipfrac0``."""

    primary: str
    rule: str
    clip_interval: tuple[float, float]
    max_abs_dlogp: Mapping[str, float] = field(converter=freeze)
    approx_kl0: Mapping[str, float] = field(factory=dict, converter=freeze)
    clipfrac0: Mapping[str, float] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class ToleranceFile:
    """The whole file. ``forward`` and ``gradient`` are by operator class and dtype."""

    schema: str
    id: str
    version: str
    origin: str = ""
    notes: tuple[str, ...] = ()
    dlogp: DlogpTable
    forward: Mapping[str, Mapping[str, Tolerance]] = field(factory=dict, converter=freeze)
    gradient: Mapping[str, Mapping[str, Tolerance]] = field(factory=dict, converter=freeze)
    invariance: Mapping[str, str] = field(factory=dict, converter=freeze)


def load_contract(path: Path) -> ToleranceContract:
    """The contract in a file. Raises InvalidInput where it is missing or wrong, with every fault."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the tolerance contract cannot be read: {error}", where=str(path)) from error
    return parse_contract(text, where=str(path))


def parse_contract(text: str, *, where: str) -> ToleranceContract:
    """The contract in a JSON text; its digest is SHA-256 of the text's canonical JSON. Raises InvalidInput."""
    data = load_json(text, where=where)
    try:
        read = structure(data, ToleranceFile)
        if faults := tuple(_faults(read)):
            raise StructureError(faults)
    except StructureError as error:
        located = [Fault(message=item.message, where=f"{where}: {dotted(item.path)}") for item in error.path_faults]
        raise InvalidInput(faults=located) from error
    return _contract(read, data)


def _contract(read: ToleranceFile, data: Json) -> ToleranceContract:
    return ToleranceContract(
        ref=ContractRef(id=read.id, version=read.version, digest=digest(data)),
        clip_interval=read.dlogp.clip_interval,
        max_abs_dlogp=read.dlogp.max_abs_dlogp,
        approx_kl0=read.dlogp.approx_kl0,
        clipfrac0=read.dlogp.clipfrac0,
        forward=read.forward,
        gradient=read.gradient,
        invariance=read.invariance,
    )


def _faults(read: ToleranceFile) -> Iterator[PathFault]:
    """What the types do not say."""
    if read.schema != SCHEMA:
        yield PathFault(("schema",), f"{read.schema!r} is not {SCHEMA!r}")
    for name in ("id", "version"):
        if not getattr(read, name).strip():
            yield PathFault((name,), "must not be empty")
    table = read.dlogp
    for name, accepted in (("primary", _PRIMARY), ("rule", _RULE)):
        if getattr(table, name) != accepted:
            yield PathFault(("dlogp", name), f"{getattr(table, name)!r} is not {accepted!r}, the one form there is")
    low, high = table.clip_interval
    if not 0 <= low <= 1 <= high:
        yield PathFault(("dlogp", "clip_interval"), f"[{low:g}, {high:g}] must hold 1 and start at 0 or above")
    if not table.max_abs_dlogp:
        yield PathFault(("dlogp", _PRIMARY), "needs at least one row")
    for metric in (_PRIMARY, "approx_kl0", "clipfrac0"):
        yield from _row_faults(metric, getattr(table, metric))


def _row_faults(metric: str, rows: Mapping[str, float]) -> Iterator[PathFault]:
    for dtype, limit in rows.items():
        path = ("dlogp", metric, dtype)
        if dtype not in DTYPE_ORDER:
            yield PathFault(path, f"{dtype!r} is not one of {', '.join(DTYPE_ORDER)}")
        if limit < 0 or not math.isfinite(limit):
            yield PathFault(path, f"a limit is a number of at least 0, got {limit:g}")

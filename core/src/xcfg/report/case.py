"""One case on a terminal, with its provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from xcfg.model.json import Json
from xcfg.model.provenance import KnobState
from xcfg.report.wording import FAKE_NOTE, change, number, setting

if TYPE_CHECKING:
    from rich.console import Console


def print_case(out: Console, content: Mapping[str, Json], *, per_rank: bool) -> None:
    """Print a ``show`` document."""
    case = content["case"]
    title = f"{case['id']} {case['name']} ({change(case)}): {case['status']}"
    out.print(Text(title, style="bold"))
    if content.get("fake"):
        out.print(Text(FAKE_NOTE, style="bold yellow"))
    if case["reason"]:
        out.print(case["reason"], markup=False)
    out.print(f"dtype {case['dtype'] or '-'}, limit {number(case['threshold'])}, {case['active_tokens']} active tokens")
    if case["assumed"]:
        out.print(f"stated by neither side, assumed equal: {', '.join(case['assumed'])}", markup=False)
    _print(out, ["metric", "value", "limit"], _metrics(case))
    _print(out, ["knob", "side", "requested", "materialized", "observed", "state"], _provenance(case))
    if per_rank:
        _print(out, ["rollout rank", "training rank", "tokens", "max |dlogp|", "mean"], _ranks(case))
    if content["tokens"]:
        rows = [[_cell(value) for value in row.values()] for row in content["tokens"]]
        _print(out, list(content["tokens"][0]), rows)


def _metrics(case: Mapping[str, Json]) -> list[list[str]]:
    """Every metric beside its own row of the contract, where it has one; that of ``max_abs_dlogp`` alone decides."""
    limits = case["limits"]
    return [
        [name, f"{value:.6g}", number(limits[name]) if name in limits else ""]
        for name, value in case["metrics"].items()
    ]


def _provenance(case: Mapping[str, Json]) -> list[list[str]]:
    return [
        [name, role, *_values(item), item["state"] + (f": {item['reason']}" if item["reason"] else "")]
        for name, knob in case["knobs"].items()
        for role, item in knob["sides"].items()
    ]


def _values(item: Mapping[str, Json]) -> list[str]:
    """Requested, materialized and observed; a dash where the knob has no meaning or nothing was seen."""
    if item["state"] == KnobState.INAPPLICABLE:
        return ["-", "-", "-"]
    seen = ["-" if item[name] is None else setting(item[name]) for name in ("materialized", "observed")]
    return [setting(item["requested"]), *seen]


def _ranks(case: Mapping[str, Json]) -> list[list[str]]:
    return [
        [str(item["rollout_rank"]), str(item["train_rank"]), str(item["active_tokens"]),
         number(item["metrics"].get("max_abs_dlogp")), number(item["metrics"].get("mean_abs_dlogp"))]
        for item in case["per_rank"]
    ]  # fmt: skip


def _cell(value: Json) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _print(out: Console, headings: list[str], rows: list[list[str]]) -> None:
    if rows:
        made = Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in rows:
            made.add_row(*(Text(cell) for cell in row))
        out.print(made, soft_wrap=False)

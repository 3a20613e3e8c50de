"""The sweep for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

DRIFT = ("max_abs", "p95_abs", "p99_abs", "max_relative")


def show(out: Console, found: Mapping[str, Any]) -> None:
    """Log-sum-exps first, then logprobs, the worst tokens, the ranks, and what was reduced how."""
    entries = found["topologies"]
    for kind, title in (("lse", "drift of the log-sum-exp, nats"), ("dlogp", "drift of the logprob, nats")):
        headings = ["tp", "cp", "dtype", "against", *DRIFT, "bits"]
        rows = [
            [*_place(item), name, *(_number(values[key]) for key in DRIFT), _bits(item)]
            for item in entries
            for name, values in item[kind].items()
        ]
        _table(out, title, headings, rows)
    headings = ["tp", "cp", "dtype", "row", "token", "owner rank", "logprob", "float64", "dlogp"]
    rows = [[*_place(item), *_worst(item["worst"])] for item in entries]
    _table(out, "worst token against float64", headings, rows)
    headings = [
        "tp",
        "cp",
        "dtype",
        "rank",
        "rows",
        "columns",
        "max_abs",
        "p95_abs",
        "p99_abs",
        "worst row",
        "owner rank",
    ]
    rows = [[*_place(item), *_rank(rank)] for item in entries for rank in item["ranks"]]
    _table(out, "dlogp of every rank against float64, nats", headings, rows)
    reduction = found["reduction"]
    out.print(Text(f"reduction: {reduction['scheme']}, block {reduction['block']}, {reduction['implementation']}"))
    out.print(Text(f"merge: {reduction['merge']}; collective: {reduction['collective']}"))
    out.print(Text(f"context parallel: {reduction['context_parallel']}"))
    for name, value in found["digests"]["inputs"].items():
        out.print(Text(f"inputs {name}: {value}"))
    out.print(Text(f"code: {found['digests']['code']}"))
    out.print(Text(f"command: {' '.join(found['command'])}"))
    limit = f"{found['judged_on']} row of {found['contract']['version']}, {_number(found['threshold'])}"
    out.print(Text(f"{found['status']}: {len(entries)} results, max |dlogp| against float64 judged on the {limit}"))


def _table(out: Console, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    made = Table(*headings, title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    out.print(made, soft_wrap=False)


def _place(item: Mapping[str, Any]) -> list[str]:
    return [str(item["tp"]), str(item["cp"]), item["dtype"]]


def _bits(item: Mapping[str, Any]) -> str:
    if not item["replicas_agree"]:
        return "ranks disagree"
    return "same" if item["bitwise_as_first"] else "other"


def _worst(item: Mapping[str, Any]) -> list[str]:
    places = [str(item[key]) for key in ("row", "token", "owner_rank")]
    return [*places, f"{item['logprob']:.7f}", f"{item['reference_logprob']:.7f}", _number(item["dlogp"])]


def _rank(item: Mapping[str, Any]) -> list[str]:
    spans = ["-".join(map(str, item[key])) for key in ("rows", "columns")]
    drift = [_number(item["dlogp"]["float64"][key]) for key in ("max_abs", "p95_abs", "p99_abs")]
    return [str(item["rank"]), *spans, *drift, str(item["worst"]["row"]), str(item["worst"]["owner_rank"])]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"

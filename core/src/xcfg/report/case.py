"""One case on a terminal, with its provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from xcfg.model.json import Json
from xcfg.report.layout import print_table
from xcfg.report.metrics import metric_rows, rank_rows
from xcfg.report.provenance import difference_rows, provenance_rows
from xcfg.report.wording import FAKE_NOTE, around_words, change, limit_note, number, token_words

if TYPE_CHECKING:
    from rich.console import Console


def print_case(out: Console, content: Mapping[str, Json], *, per_rank: bool) -> None:
    """Print a ``show`` document."""
    case = content["case"]
    title = f"{case['id']} {case['name']} ({change(case)}): {case['status']}"
    out.print(Text(title, style="bold"))
    if content.get("fake"):
        out.print(Text(FAKE_NOTE, style="bold yellow"))
    if limited := limit_note(content):
        out.print(Text(limited, style="bold yellow"))
    if case["reason"]:
        out.print(case["reason"], markup=False)
    out.print(f"dtype {case['dtype'] or '-'}, limit {number(case['threshold'])}, {case['active_tokens']} active tokens")
    if case["assumed"]:
        out.print(f"not proven equal, assumed: {', '.join(case['assumed'])}", markup=False)
    print_table(out, ["metric", "value", "limit"], metric_rows(case))
    print_table(out, ["knob", "side", "requested", "materialized", "observed", "state"], provenance_rows(case))
    if content["differences"] and case["status"] != "pass":
        print_table(
            out, ["not the same", "rollout", "training", "because of it"], difference_rows(content["differences"])
        )
    if per_rank:
        print_table(out, ["rollout rank", "training rank", "tokens", "max |dlogp|", "mean"], rank_rows(case))
    for item in content["tokens"]:
        out.print(f"token: {token_words(item)}", markup=False)
        out.print(f"       around it, token[d]: {around_words(item)}", markup=False)

"""A gate on a terminal: the verdict, what is pinned, and each case against what it has to give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from xcfg.model.json import Json
from xcfg.report.layout import print_table
from xcfg.report.wording import FAKE_NOTE, STYLES, number, setting

if TYPE_CHECKING:
    from rich.console import Console

_ROW = {True: "within", False: "outside"}


def print_gate(out: Console, content: Mapping[str, Json]) -> None:
    """Print a ``gate`` document."""
    out.print(Text(f"{content['name']}: ", style="bold"), end="")
    out.print(Text(gate_line(content), style=STYLES.get(content["status"], "yellow")))
    if content["fake"]:
        out.print(Text(FAKE_NOTE, style="bold yellow"))
    out.print(f"aligned: {_listed(content['values'])}", markup=False)
    if content["still_different"]:
        out.print(f"left as they are: {', '.join(content['still_different'])}", markup=False)
    if content["reason"]:
        out.print(f"what the gate pins is of something else: its {content['reason']}", markup=False)
    rows = [
        [
            check["case"][:8],
            check["role"],
            ", ".join(check["aligned"]) or "nothing (production)",
            _ROW[check["expected"]],
            _ROW.get(check["within_baseline_row"], check["status"]),
            number(check["max_abs_dlogp"]),
            number(check["threshold"]),
        ]
        for check in content["checks"]
    ]
    print_table(out, ["case", "is", "aligned", "has to be", "is now", "max |d|", "limit"], rows)
    for advice in dict.fromkeys(check["advice"] for check in content["checks"] if check["advice"]):
        out.print(advice, markup=False)


def gate_line(content: Mapping[str, Json]) -> str:
    """``PASS: 7 of 7 pinned cases held``."""
    checks = content["checks"]
    held = sum(check["held"] for check in checks)
    return f"{content['status'].upper()}: {held} of {len(checks)} pinned cases held"


def _listed(values: Mapping[str, Json]) -> str:
    return ", ".join(f"{knob}={setting(value)}" for knob, value in values.items()) or "nothing"

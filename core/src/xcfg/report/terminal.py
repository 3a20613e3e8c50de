"""The report of a run on a terminal: verdict first, then the cases, then what stands out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from xcfg.model.json import Json
from xcfg.report.sparkline import sparkline
from xcfg.report.wording import FAKE_NOTE, STYLES, change, limit_note, number, token_words, verdict_line

if TYPE_CHECKING:
    from rich.console import Console


def print_report(out: Console, content: Mapping[str, Json]) -> None:
    """Print a ``run`` or ``report`` document."""
    out.print(Text(f"{content['name']}: ", style="bold"), end="")
    out.print(Text(verdict_line(content), style=STYLES.get(content["status"], "yellow")))
    if content.get("fake"):
        out.print(Text(FAKE_NOTE, style="bold yellow"))
    if limited := limit_note(content):
        out.print(Text(limited, style="bold yellow"))
    _one_side(out, content)
    if "engines" in content:
        engines = content["engines"]
        out.print(
            f"engines: {engines['distinct']} distinct, {engines['constructed']} constructed, "
            f"{engines['reused_from_disk']} reused from disk; {content['wall_s']:.0f} s in all, "
            f"{content['engine_s']:.0f} s in engines"
        )
    out.print(_cases(content, plain=out.options.ascii_only), soft_wrap=False)
    out.print("d = training minus rollout logprob of the selected token, in nats")
    _contract(out, content)
    _worst(out, content)
    _reasons(out, content)
    _findings(out, content)


def _one_side(out: Console, content: Mapping[str, Json]) -> None:
    """How the side runs ended where one side alone was asked for."""
    sides = content.get("sides")
    if sides is None:
        return
    out.print(
        f"{sides['role']} side runs: {sides['sealed']} sealed, {sides['reused']} reused from disk, "
        f"{len(sides['failed'])} failed of {sides['planned']}; a case is judged once its other side is there too"
    )
    for item in sides["failed"]:
        out.print(f"{item['status']}: {sides['role']} {item['side_id']}: {item['reason']}", markup=False)


def _cases(content: Mapping[str, Json], *, plain: bool) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("case", "changed from production", "status"):
        made.add_column(heading, overflow="fold", no_wrap=heading == "status")
    for heading in ("max |d|", "limit", "mean |d|", "p99 |d|", "tokens"):
        made.add_column(heading, justify="right", no_wrap=True)
    made.add_column("along the response", no_wrap=True)
    for case in content["cases"]:
        metrics = case["metrics"]
        label = f"{case['name']}: {change(case)}" if case["name"] not in ("", "baseline") else change(case)
        made.add_row(
            case["id"][:8],
            Text(label),
            Text(case["status"], style=STYLES.get(case["status"], "yellow")),
            number(metrics.get("max_abs_dlogp")),
            number(case["threshold"]),
            number(metrics.get("mean_abs_dlogp")),
            number(metrics.get("p99_abs_dlogp")),
            str(case["active_tokens"]),
            Text(sparkline(case["drift_profile"], plain=plain)),
        )
    return made


def _contract(out: Console, content: Mapping[str, Json]) -> None:
    for ref in {
        (c["contract"]["id"], c["contract"]["version"], c["contract"]["digest"][:12]) for c in content["cases"]
    }:
        out.print(f"limits: contract {ref[0]}, version {ref[1]}, digest {ref[2]}")


def _worst(out: Console, content: Mapping[str, Json]) -> None:
    judged = [case for case in content["cases"] if case["worst"] and case["status"] == "fail"]
    if judged:
        case = max(judged, key=lambda item: item["metrics"]["max_abs_dlogp"])
        worst = case["worst"]
        out.print(
            f"worst token: {change(case)}: {token_words(worst)}",
            markup=False,
        )


def _reasons(out: Console, content: Mapping[str, Json]) -> None:
    """Each reason once, with the cases it holds for: a missing engine is one fault, not one a case."""
    cases: dict[tuple[str, str], list[str]] = {}
    for case in content["cases"]:
        if case["status"] not in ("pass", "fail"):
            cases.setdefault((case["status"], case["reason"]), []).append(change(case))
    for (status, reason), changes in cases.items():
        more = f" and {len(changes) - 1} more cases" if len(changes) > 1 else ""
        out.print(f"{status}: {changes[0]}{more}: {reason}", markup=False)


def _findings(out: Console, content: Mapping[str, Json]) -> None:
    for case in content["cases"]:
        for item in case["findings"]:
            numbers = ", ".join(f"{key} {value}" for key, value in item["evidence"].items())
            kind = "/".join(part for part in (item["class"], item["subclass"]) if part)
            out.print(f"finding ({kind}): {change(case)}: {numbers}. {item['advice']}", markup=False)

"""One comparison on a terminal: the verdict, where it stands, what it looks like, what to try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from xcfg.model.json import Json
from xcfg.report.layout import print_table
from xcfg.report.metrics import metric_rows, rank_rows
from xcfg.report.wording import STYLES, around_words, number, token_words

if TYPE_CHECKING:
    from rich.console import Console


def print_comparison(out: Console, content: Mapping[str, Json], *, per_rank: bool) -> None:
    """Print a ``compare`` document."""
    out.print(Text(verdict(content), style=STYLES.get(content["status"], "yellow")))
    if content["assumed"]:
        out.print(f"not stated by both sides, assumed: {', '.join(content['assumed'])}", markup=False)
    _where(out, content, per_rank=per_rank)
    _looks(out, content)
    print_table(out, ["metric", "value", "limit"], metric_rows(content))
    if content["names"]:
        rows = [[name, f"{value:.6g}"] for name, value in content["names"]["metrics"].items()]
        print_table(out, [f"in {content['names']['framework']}", "value"], rows)
    ref = content["contract"]
    out.print("d = training minus rollout logprob of the selected token, in nats")
    out.print(f"limits: contract {ref['id']}, version {ref['version']}, digest {ref['digest'][:12]}", markup=False)


def verdict(content: Mapping[str, Json]) -> str:
    """``PASS: max |d| 0.012 within the bfloat16 limit 0.5 over 128 active tokens`` or the reason it is not."""
    status = content["status"].upper().replace("_", " ")
    counted = f"{content['active_tokens']} active tokens"
    if content["status"] not in ("pass", "fail"):
        return f"{status}: {content['reason']}"
    relation = "within" if content["status"] == "pass" else "beyond"
    largest = number(content["metrics"]["max_abs_dlogp"])
    limit = f"the {content['dtype']} limit {number(content['threshold'])}"
    return f"{status}: max |d| {largest} {relation} {limit} over {counted}"


def _where(out: Console, content: Mapping[str, Json], *, per_rank: bool) -> None:
    for item in content["tokens"]:
        out.print(f"where: {token_words(item)}", markup=False)
        out.print(f"       around it, token[d]: {around_words(item)}", markup=False)
    if len(content["per_rank"]) > 1 or per_rank:
        print_table(out, ["rollout rank", "training rank", "tokens", "max |d|", "mean |d|"], rank_rows(content))


def _looks(out: Console, content: Mapping[str, Json]) -> None:
    """Findings by what they say, then what they advise, each advice once."""
    for item in content["findings"]:
        kind = "/".join(part for part in (item["class"], item["subclass"]) if part)
        numbers = ", ".join(f"{key} {value}" for key, value in item["evidence"].items())
        out.print(f"looks like ({item['rule']}, {kind}, confidence {item['confidence']}): {numbers}", markup=False)
    for advice in dict.fromkeys(item["advice"] for item in content["findings"] if item["advice"]):
        out.print(f"try: {advice}", markup=False)

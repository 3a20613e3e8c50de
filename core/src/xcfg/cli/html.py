"""``xcfg report --html``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.cli.search.case_curves import CaseCurves
from xcfg.cli.search.explained import explained
from xcfg.cli.search.log import read_log
from xcfg.comparator.blocks import TokenPairs
from xcfg.comparator.worst import worst_tokens
from xcfg.model.json import Json
from xcfg.planner.check_names import BASELINE
from xcfg.report.html.content import Compared, page_content
from xcfg.report.html.page import html_page
from xcfg.report.html.reproduce import Source
from xcfg.runner.durable import replace

WORST = 20
"""Tokens of each case whose neighbourhood is worth a look."""

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome
    from xcfg.model.plan import Plan
    from xcfg.plugin.registry import Registry
    from xcfg.report.text import TokenText
    from xcfg.runner.report import RunReport


def write_html(
    path: Path,
    folder: Path,
    registry: Registry,
    content: Mapping[str, Json],
    judged: tuple[Plan, RunReport, Sequence[CaseOutcome]],
    text: TokenText | None,
) -> None:
    """Write the page of a run; an existing file is replaced in one step."""
    plan, run, outcomes = judged
    proven, _, _ = explained(folder, registry, CaseCurves())
    compared = [_compared(item) for item in outcomes]
    page = page_content(content, proven, compared, _source(plan, run), text)
    replace(path, html_page(content, {**page, "spent": _spent(folder, run)}))


def _compared(outcome: CaseOutcome) -> Compared:
    tokens = outcome.tokens
    if tokens is None or not outcome.comparison.status.judged:
        return Compared(tokens=tokens)
    return Compared(tokens=tokens, worst=[item.token for item in worst_tokens(TokenPairs(tokens), WORST)])


def _source(plan: Plan, run: RunReport) -> Source:
    experiment = plan.experiment
    linked = [name for table in experiment.linked.values() for name in table]
    limit = () if plan.limit is None else ("--limit", str(plan.limit))
    return Source(
        moved=frozenset({*experiment.axes, *linked, *experiment.fixed}),
        names=frozenset({BASELINE, *(case.name for case in experiment.cases)}),
        options=(*limit, *(("--allow-fake",) if run.fake else ())),
    )


def _spent(folder: Path, run: RunReport) -> dict[str, Json]:
    """Engines and seconds of the searches in the folder; where there was none, of its last execution."""
    log = read_log(folder)
    if log.executions:
        return {"of": "all searches", "constructed": log.constructed, "engine_s": log.engine_s}
    return {
        "of": "the last execution",
        "constructed": run.engines.constructed,
        "engine_s": run.engine_s,
        "distinct": run.engines.distinct,
        "reused": run.engines.reused_from_disk,
        "wall_s": run.wall_s,
    }

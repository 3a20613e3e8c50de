"""``xcfg report --html``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.cli.search.case_curves import CaseCurves
from xcfg.cli.search.explained import explained
from xcfg.comparator.blocks import TokenPairs
from xcfg.comparator.worst import worst_tokens
from xcfg.model.json import Json
from xcfg.report.html.content import Compared, page_content
from xcfg.report.html.page import check_html, html_page
from xcfg.report.text import TokenText
from xcfg.runner.durable import replace

WORST = 20
"""Tokens of each case whose neighbourhood is worth a look."""

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome
    from xcfg.plugin.registry import Registry


def write_html(
    path: Path,
    folder: Path,
    registry: Registry,
    content: Mapping[str, Json],
    outcomes: Sequence[CaseOutcome],
    tokenizer: Path | None,
) -> None:
    """Write the page of a run; an existing file is replaced in one step.

    Raises EnvironmentFault where a library for it is missing.
    """
    check_html()
    text = None if tokenizer is None else TokenText.load(tokenizer)
    answer, _, _ = explained(folder, registry, CaseCurves())
    replace(path, html_page(content, page_content(content, answer, [_compared(item) for item in outcomes], text)))


def _compared(outcome: CaseOutcome) -> Compared:
    tokens = outcome.tokens
    if tokens is None or not outcome.comparison.status.judged:
        return Compared(tokens=tokens)
    return Compared(tokens=tokens, worst=[item.token for item in worst_tokens(TokenPairs(tokens), WORST)])

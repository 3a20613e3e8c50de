"""What the page is made from: the run's document, with the tokens of each case and the knobs side by side."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xcfg.comparator.blocks import TokenPairs
from xcfg.comparator.worst import worst_tokens
from xcfg.model.json import Json
from xcfg.report.html.points import points
from xcfg.report.metrics import rank_rows
from xcfg.report.provenance import provenance_rows
from xcfg.report.wording import change, setting

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome
    from xcfg.report.text import TokenText

TOKENS = 100_000
"""Tokens drawn over all cases; a page with so many stays below 6 MB."""
LEAST = 50
WORST = 20


def page_content(
    content: Mapping[str, Json],
    explained: Mapping[str, Json] | None,
    outcomes: Sequence[CaseOutcome],
    text: TokenText | None = None,
) -> dict[str, Json]:
    """A ``run`` or ``report`` document, an ``explain`` document and the judged cases as the page reads them."""
    drawn = [outcome for outcome in outcomes if outcome.tokens is not None]
    room = max(TOKENS // max(len(drawn), 1), LEAST)
    cases = list(content["cases"])
    axes = _axes(cases)
    return {
        "name": content["name"],
        "status": content["status"],
        "explained": None if explained is None else {name: explained[name] for name in _EXPLAINED},
        "axes": [{"name": name, "values": [setting(value) for value in values]} for name, values in axes.items()],
        "metrics": list(dict.fromkeys(name for case in cases for name in case["metrics"])),
        "cases": [_case(case, outcome, axes, room, text) for case, outcome in zip(cases, outcomes, strict=True)],
    }


_EXPLAINED = ("level", "level_reason", "word", "reason", "aligned", "minimal_sets", "still_different", "assumption")


def _axes(cases: Sequence[Mapping[str, Json]]) -> dict[str, list[Json]]:
    """Every axis that has more than one value among the cases, values in the order they come."""
    found: dict[str, list[Json]] = {}
    for case in cases:
        for name, value in case["axes"].items():
            known = found.setdefault(name, [])
            if value not in known:
                known.append(value)
    return {name: values for name, values in found.items() if len(values) > 1}


def _case(
    case: Mapping[str, Json],
    outcome: CaseOutcome,
    axes: Mapping[str, list[Json]],
    room: int,
    text: TokenText | None,
) -> dict[str, Json]:
    held = outcome.tokens if outcome.comparison.status.judged else None
    worst = [] if held is None else [item.token for item in worst_tokens(TokenPairs(held), WORST)]
    return {
        **{name: case[name] for name in ("id", "name", "status", "reason", "dtype", "threshold", "active_tokens")},
        "change": change(case),
        "metrics": case["metrics"],
        "place": [values.index(case["axes"][name]) if name in case["axes"] else -1 for name, values in axes.items()],
        "knobs": provenance_rows(case),
        "ranks": rank_rows(case),
        "worst": [
            [item.sequence, item.position, item.token, "" if text is None else text.of(item.token), item.rollout_logp,
             item.train_logp, item.train_logp - item.rollout_logp]
            for item in worst
        ],
        "measured": case["measured"],
        "reproduce": _reproduce(case, axes),
        "tokens": points(outcome.tokens, room),
    }  # fmt: skip


def _reproduce(case: Mapping[str, Json], axes: Mapping[str, list[Json]]) -> str:
    """One command that executes this case alone, in the experiment of the run."""
    if case["name"] not in ("", "baseline"):
        chosen = [f"name={case['name']}"]
    else:
        chosen = [f"{name}={_written(case['axes'][name])}" for name in axes if name in case["axes"]]
    words = [word for item in chosen for word in ("--filter", item)]
    return shlex.join(["xcfg", "run", "EXPERIMENT", *words])


def _written(value: Json) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)

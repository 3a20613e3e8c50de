"""What the page is made from: the run's document, with the tokens of each case and the knobs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from xcfg.model.json import Json, tupled
from xcfg.report.html.answer import answer
from xcfg.report.html.points import points
from xcfg.report.html.reproduce import Source, reproduce
from xcfg.report.metrics import rank_rows
from xcfg.report.provenance import provenance_rows
from xcfg.report.wording import change, setting

if TYPE_CHECKING:
    from xcfg.model.outcome import PairedTokens
    from xcfg.model.result import WorstToken
    from xcfg.report.text import TokenText

TOKENS = 100_000
"""Tokens drawn over all cases; a page with so many stays below 6 MB."""
LEAST = 50


@frozen(kw_only=True)
class Compared:
    """What a case has beside its document: its tokens and the worst of them; nothing where it was not compared."""

    tokens: PairedTokens | None = None
    worst: tuple[WorstToken, ...] = field(default=(), converter=tupled)


def page_content(
    content: Mapping[str, Json],
    explained: Mapping[str, Json] | None,
    compared: Sequence[Compared],
    source: Source,
    text: TokenText | None = None,
) -> dict[str, Json]:
    """A ``report`` document, an ``explain`` document and the tokens of each case as the page reads them."""
    drawn = sum(item.tokens is not None for item in compared)
    room = max(TOKENS // max(drawn, 1), LEAST)
    cases = list(content["cases"])
    axes = _axes(cases)
    return {
        "name": content["name"],
        "status": content["status"],
        "explained": None if explained is None else answer(explained),
        "axes": [{"name": name, "values": [setting(value) for value in values]} for name, values in axes.items()],
        "metrics": list(dict.fromkeys(name for case in cases for name in case["metrics"])),
        "cases": [_case(case, item, axes, room, source, text) for case, item in zip(cases, compared, strict=True)],
    }


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
    item: Compared,
    axes: Mapping[str, list[Json]],
    room: int,
    source: Source,
    text: TokenText | None,
) -> dict[str, Json]:
    return {
        **{name: case[name] for name in ("id", "name", "status", "reason", "dtype", "threshold", "active_tokens")},
        "change": change(case),
        "metrics": case["metrics"],
        "place": [values.index(case["axes"][name]) if name in case["axes"] else -1 for name, values in axes.items()],
        "knobs": provenance_rows(case),
        "ranks": rank_rows(case),
        "worst": [
            [token.sequence, token.position, token.token, "" if text is None else repr(text.of(token.token)),
             token.rollout_logp, token.train_logp, token.train_logp - token.rollout_logp]
            for token in item.worst
        ],
        "measured": case["measured"],
        "reproduce": reproduce(case, axes, source),
        "tokens": points(item.tokens, room),
    }  # fmt: skip

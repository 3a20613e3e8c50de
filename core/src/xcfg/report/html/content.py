"""What the page is made from: the run's document, with the tokens of each case and the knobs side by side."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from xcfg.model.json import Json, tupled
from xcfg.report.html.points import points
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
        "explained": None if explained is None else {name: explained[name] for name in _EXPLAINED},
        "axes": [{"name": name, "values": [setting(value) for value in values]} for name, values in axes.items()],
        "metrics": list(dict.fromkeys(name for case in cases for name in case["metrics"])),
        "cases": [_case(case, item, axes, room, text) for case, item in zip(cases, compared, strict=True)],
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
    item: Compared,
    axes: Mapping[str, list[Json]],
    room: int,
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
            [token.sequence, token.position, token.token, "" if text is None else text.of(token.token),
             token.rollout_logp, token.train_logp, token.train_logp - token.rollout_logp]
            for token in item.worst
        ],
        "measured": case["measured"],
        "reproduce": _reproduce(case, axes),
        "tokens": points(item.tokens, room),
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

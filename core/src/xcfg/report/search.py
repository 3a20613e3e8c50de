"""The answer of a search on a terminal: the set first, then what it rests on and what was not tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from xcfg.model.json import Json
from xcfg.report.layout import print_table
from xcfg.report.wording import FAKE_NOTE, STYLES, limit_note, number, setting

if TYPE_CHECKING:
    from rich.console import Console

_GIB = 2**30


def print_search(out: Console, content: Mapping[str, Json]) -> None:
    """Print a ``search`` or ``explain`` document."""
    out.print(Text(f"{content['name']}: ", style="bold"), end="")
    out.print(Text(_answer(content), style=STYLES.get(content["status"], "yellow")))
    if content["fake"]:
        out.print(Text(FAKE_NOTE, style="bold yellow"))
    if limited := limit_note(content):
        out.print(Text(limited, style="bold yellow"))
    out.print(f"level {content['level']}: {content['level_reason']}", markup=False)
    out.print(f"{content['reason']}", markup=False)
    _cost(out, content)
    _alignment(out, content)
    _proof(out, content)
    _left(out, content)
    _alternatives(out, content)
    for item in content["findings"]:
        kind = "/".join(part for part in (item["class"], item["subclass"]) if part)
        out.print(f"finding ({kind}, {item['rule']}, confidence {item['confidence']}): {item['advice']}", markup=False)


def _answer(content: Mapping[str, Json]) -> str:
    if content["aligned"] is None:
        return "no alignment that passes is known"
    if not content["aligned"]:
        return "production passes with nothing aligned"
    return f"align {', '.join(content['aligned'])} ({content['word']})"


def _cost(out: Console, content: Mapping[str, Json]) -> None:
    spent = content["executions"]
    built = f"{_engines(spent['constructions'])} constructed, " if "engines" in content else ""
    out.print(
        f"{built}{spent['run']} cases executed, {spent['reused']} judged from what was on disk; trying everything "
        f"would be {spent['exhaustive_would_be']}"
    )


def _alignment(out: Console, content: Mapping[str, Json]) -> None:
    aligned = content["aligned"] or {}
    rows = [
        [name, ", ".join(f"{knob}={setting(value)}" for knob, value in sets.items())] for name, sets in aligned.items()
    ]
    print_table(out, ["aligned knob", "set to"], rows)
    if content["still_different"]:
        out.print(f"left as they are: {', '.join(content['still_different'])}", markup=False)
    for knob, reason in content["unaligned"].items():
        out.print(f"not searched: {knob}: {reason}", markup=False)


def _proof(out: Console, content: Mapping[str, Json]) -> None:
    told = Counter(tuple(item["aligned"]) for item in {item["case"]: item for item in content["proof"]}.values())
    rows = [
        [
            item["case"][:8],
            (_valued(item["values"]) if told[tuple(item["aligned"])] > 1 else ", ".join(item["aligned"]))
            or "nothing (production)",
            {True: "within", False: "outside", None: item["status"]}[item["within_baseline_row"]],
            number(item["max_abs_dlogp"]),
            number(item["threshold"]),
        ]
        for item in content["proof"]
    ]
    print_table(out, ["case", "aligned", "production row", "max |d|", "limit"], rows)


def _valued(values: Mapping[str, Json]) -> str:
    return ", ".join(f"{knob}={setting(value)}" for knob, value in values.items())


def _left(out: Console, content: Mapping[str, Json]) -> None:
    if content["assumption"]:
        out.print(f"assumed: {content['assumption']}", markup=False)
    untried = content["untried"]
    if untried is not None and untried["smaller"]:
        text = f"of {untried['smaller']} smaller sets {untried['executed']} were executed"
        first = untried["first"]
        text += "" if first is None else f"; one of those that were not: {', '.join(first)}"
        out.print(text, markup=False)
    for words, key in (
        ("no verdict twice the same", "unsettled"),
        ("cannot be built here", "unsupported"),
        ("broke, execute again", "unjudged"),
    ):
        for item in content[key]:
            out.print(f"{words}: {_named(item)}", markup=False)
    for less, more in content["contradictions"]:
        out.print(f"cancelling: {_named(less)} passes, {_named(more)} does not", markup=False)
    following = content.get("next")
    if following is not None:
        out.print(
            f"next case that would tell more: align {_named(following['aligned'])} "
            f"({_engines(following['constructions'])})",
            markup=False,
        )


def _alternatives(out: Console, content: Mapping[str, Json]) -> None:
    rows = [
        [item["case"][:8], _named(item["aligned"]), f"{item['slowdown']:.2f}", f"{item['memory'] / _GIB:.2f}"]
        for item in content["costs"]
    ]
    print_table(out, ["case", "passing alignment that no other beats", "time / production", "peak GiB"], rows)


def _engines(number: int) -> str:
    return "1 engine" if number == 1 else f"{number} engines"


def _named(knobs: Sequence[str]) -> str:
    return ", ".join(knobs) or "nothing"

"""What the executed cases prove, in the words of the page."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json
from xcfg.report.wording import setting

RUNGS = {
    "L0": "both sides are asked the same question",
    "L1": "production as it is lies within the limit",
    "L2": "which knobs matter is being found out",
    "L3": "one knob aligned is enough",
    "L4": "a smallest set of knobs aligned together is enough",
    "L5": "everything aligned, as a diagnosis",
}
"""The ladder, the least intervention first."""
_ROW = {True: "within", False: "outside"}
_KEPT = ("level", "level_reason", "word", "reason", "still_different", "unaligned", "assumption")


def answer(explained: Mapping[str, Json]) -> dict[str, Json]:
    """An ``explain`` document as the page shows it: the ladder, the sets, the cases that prove them, what is next."""
    following, untried = explained["next"], explained["untried"]
    aligned = explained["aligned"]
    return {
        **{name: explained[name] for name in _KEPT},
        "ladder": RUNGS,
        "aligned": None if aligned is None else {name: _settings(sets) for name, sets in aligned.items()},
        "minimal_sets": [_named(names) for names in explained["minimal_sets"]],
        "proof": [_proof(item) for item in explained["proof"]],
        "untried": "" if not untried or not untried["smaller"] else f"{untried['executed']} of {untried['smaller']}",
        "next": "" if following is None else _named(following["aligned"]),
        "findings": [_finding(item) for item in explained["findings"]],
    }


def _proof(item: Mapping[str, Json]) -> dict[str, Json]:
    found = _ROW.get(item["within_baseline_row"], item["status"])
    return {
        "case": item["case"],
        "aligned": _named(item["aligned"]) if item["aligned"] else "nothing (production)",
        "values": _settings(item["values"]),
        "row": found,
        "max_abs_dlogp": item["max_abs_dlogp"],
        "threshold": item["threshold"],
    }


def _finding(item: Mapping[str, Json]) -> str:
    kind = "/".join(part for part in (item["class"], item["subclass"]) if part)
    return f"{kind}: {item['advice']}"


def _settings(sets: Mapping[str, Json]) -> str:
    return ", ".join(f"{knob}={setting(value)}" for knob, value in sets.items())


def _named(knobs: list[Json]) -> str:
    return ", ".join(str(knob) for knob in knobs) or "nothing"

"""What the types of an experiment do not say: its schema, ranges of the sampling settings, one token source."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xcfg.model.codec import Path
from xcfg.model.experiment import SCHEMA
from xcfg.model.json import Json
from xcfg.planner.problem import Problem

_SAMPLING: dict[str, tuple[Callable[[float], bool], str]] = {
    "max_new_tokens": (lambda value: value >= 1, "at least 1"),
    "temperature": (lambda value: value >= 0, "at least 0"),
    "top_p": (lambda value: 0 < value <= 1, "above 0 and at most 1"),
    "top_k": (lambda value: value >= 0, "at least 0 (0 keeps every token)"),
    "seed": (lambda value: 0 <= value < 1 << 63, "at least 0 and below 2**63"),
}


def check_values(data: dict[str, Json]) -> list[Problem]:
    """Problems of single values; those of the wrong type are left to the shape check."""
    return [*_schema(data), *_name(data), *_tokens(data.get("tokens")), *_clip_range(data.get("clip_range"))]


def _schema(data: dict[str, Json]) -> Iterator[Problem]:
    found = data.get("schema", SCHEMA)
    if isinstance(found, str) and found != SCHEMA:
        yield Problem(path=("schema",), message=f"{found!r} is not a schema this version reads", hint=f"use {SCHEMA}")


def _name(data: dict[str, Json]) -> Iterator[Problem]:
    found = data.get("name")
    if isinstance(found, str) and not found.strip():
        yield Problem(path=("name",), message="an experiment needs a name")
    elif isinstance(found, str) and (found in (".", "..") or set(found) & set("/\\\0")):
        yield Problem(path=("name",), message=f"{found!r} cannot name a folder, and results go to runs/NAME")


def _tokens(tokens: Json) -> Iterator[Problem]:
    if not isinstance(tokens, dict):
        return
    given = [name for name in ("sample", "recorded") if tokens.get(name)]
    if len(given) != 1:
        said = "neither is given" if not given else "both are given"
        yield Problem(path=("tokens",), message=f"exactly one of sample and recorded is required, {said}", at_key=True)
    sample = tokens.get("sample")
    for name, (accepted, said) in _SAMPLING.items():
        value = sample.get(name) if isinstance(sample, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and not accepted(value):
            path: Path = ("tokens", "sample", name)
            yield Problem(path=path, message=f"{value!r} is out of range: {said}")


def _clip_range(pair: Json) -> Iterator[Problem]:
    """The bounds of the ratio, so 1 lies between them: (0.8, 1.2), not (0.2, 0.2)."""
    if not isinstance(pair, list) or len(pair) != 2:
        return
    low, high = pair
    if not all(isinstance(bound, int | float) and not isinstance(bound, bool) for bound in pair):
        return
    if not 0 <= low <= 1 <= high:
        message = f"[{low}, {high}] are no bounds of a ratio: low is in 0..1, high is at least 1"
        yield Problem(path=("clip_range",), message=message)

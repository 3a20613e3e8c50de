"""The command that executes one case of a run alone."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Mapping, Sequence

from attrs import frozen

from xcfg.model.json import Json

_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_WORDS = frozenset({"true", "false", "null"})
"""What YAML reads as something else than text."""
_AGAIN = "again"


@frozen(kw_only=True)
class Source:
    """Where the cases of a run come from: knobs that the experiment's own axes move, and names of its own cases.

    A search makes others, of neither. ``options`` are those that every case of the run needs.
    """

    moved: frozenset[str]
    names: frozenset[str]
    options: tuple[str, ...] = ()


def reproduce(case: Mapping[str, Json], axes: Collection[str], source: Source) -> str:
    """``xcfg run EXPERIMENT ...`` for the one case of this id, in the words of a shell."""
    words = [*_chosen(case, axes, source), *source.options]
    return shlex.join(["xcfg", "run", "EXPERIMENT", *words])


def _chosen(case: Mapping[str, Json], axes: Collection[str], source: Source) -> Sequence[str]:
    if case["name"] in source.names:
        return ["--filter", f"name={_yaml(case['name'])}"]
    if not case["name"] and set(case["changed"]) <= source.moved:
        return [word for name in axes for word in ("--filter", f"{name}={_alone(case['axes'].get(name))}")]
    sets = {name: case["axes"].get(name) for name in case["changed"]}
    spelled = json.dumps([{"name": _AGAIN, "set": sets}], ensure_ascii=False)
    return [f"cases={spelled}", "--filter", f"name={_AGAIN}"]


def _alone(value: Json) -> str:
    """A value as a filter takes it; a list would be several values."""
    return _yaml([value]) if isinstance(value, list | tuple) else _yaml(value)


def _yaml(value: Json) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)

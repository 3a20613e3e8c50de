"""Writes the reference pages of what was tried of each engine."""

from __future__ import annotations

import json
from pathlib import Path

from pages import index, page, table

from xcfg.plugin.compatibility import Compatibility, Outcome, Tried, compatibility_of
from xcfg.plugin.inventory import inventory

INTRO = """\
What came of every value of every knob that a scorer knows, each run by itself against the scorer `torch` on the
example checkpoint: `applied` and seen in the live engine, `refused` with a reason before or at its start, or
`substituted`, where the engine ran something else, which makes a case `invalid_provenance`. `xcfg doctor` prints the
counts, `xcfg doctor EXPERIMENT` which values of an experiment are known to make trouble. `python tests/matrix/run.py`
writes the files these pages are made of, and `nox -s full` holds them against a new run."""


def compatibility(folder: Path) -> str:
    """One page a scorer and role."""
    names, rows = [], []
    for matrix in (item for plugin in inventory() for item in compatibility_of(plugin)):
        versions = ", ".join(f"{name} {version}" for name, version in matrix.engine.items())
        counts = [str(matrix.count(outcome)) for outcome in Outcome]
        rows.append([f"`{matrix.scorer}`", matrix.role.value, matrix.device, versions, *counts])
        names.append(page(folder, f"compatibility-{matrix.scorer}-{matrix.role.value}", _matrix(matrix, versions)))
    counted = table(["scorer", "as", "on", "versions", *(item.value for item in Outcome)], rows)
    return page(folder, "compatibility", index("Compatibility", "\n".join([INTRO, "", *counted]), names))


def _matrix(matrix: Compatibility, versions: str) -> list[str]:
    rows = [
        [item.knob, _asked(item), item.outcome.value, "" if item.outcome is Outcome.REFUSED else _shown(item.observed),
         item.reason]
        for item in matrix.tried
    ]  # fmt: skip
    lines = [
        f"# {matrix.scorer} as {matrix.role.value}",
        "",
        f"Tried on a {matrix.device.upper()} with {versions}.",
        "",
    ]
    return [*lines, *table(["knob", "value", "outcome", "observed", "reason"], rows)]


def _asked(item: Tried) -> str:
    return ", ".join([_shown(item.value), *(f"{knob} {_shown(value)}" for knob, value in item.beside.items())])


def _shown(value: object) -> str:
    return f"`{json.dumps(value)}`"

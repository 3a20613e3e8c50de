"""What the installed engines were tried with, and what of it an experiment asks for: for ``xcfg doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.errors import PluginError
from xcfg.model.json import Json, thaw
from xcfg.plugin.compatibility import Compatibility, Outcome, compatibility_of
from xcfg.plugin.inventory import PluginInfo, PluginState

if TYPE_CHECKING:
    from xcfg.cli.session import Session


def tried(plugins: Sequence[PluginInfo]) -> tuple[Compatibility, ...]:
    """The matrices of all usable plugins whose file can be read."""
    return tuple(matrix for item in plugins for matrix in _read(item)[0])


def unreadable(plugins: Sequence[PluginInfo]) -> dict[str, str]:
    """Distribution to what is wrong with its file."""
    return {item.distribution: fault for item in plugins if (fault := _read(item)[1])}


@cache
def _read(plugin: PluginInfo) -> tuple[tuple[Compatibility, ...], str]:
    if plugin.state is not PluginState.AVAILABLE:
        return (), ""
    try:
        return compatibility_of(plugin), ""
    except PluginError as error:
        return (), str(error)


def summary(matrix: Compatibility) -> dict[str, Json]:
    """How many values came out how, with the versions tried and those installed now."""
    return {
        "scorer": matrix.scorer,
        "role": matrix.role.value,
        "device": matrix.device,
        "engine": dict(matrix.engine),
        "installed": {name: installed_version(name) for name in matrix.engine},
        **{outcome.value: matrix.count(outcome) for outcome in Outcome},
    }


def known_trouble(session: Session, experiment: Path, matrices: Sequence[Compatibility]) -> list[Json]:
    """Values of an experiment that an engine was seen to refuse or to replace, each with the cases that ask for it.

    Raises what planning the experiment raises.
    """
    from xcfg.cli.experiment import Selection, planned

    plan = planned(Selection(experiment=experiment), session.registry(allow_fake=True))
    by_scorer = {(item.scorer, item.role): item for item in matrices}
    found: dict[tuple[str, str, str], dict[str, Json]] = {}
    for case in plan.cases:
        for side in (case.rollout, case.training):
            matrix = by_scorer.get((side.scorer, side.role))
            for knob, value in side.knobs.items():
                known = None if matrix is None else matrix.of(knob, value)
                if known is None or known.outcome is Outcome.APPLIED:
                    continue
                entry = {"scorer": side.scorer, "role": side.role.value, "knob": knob, "value": thaw(value)}
                entry |= {"outcome": known.outcome.value, "observed": thaw(known.observed), "reason": known.reason}
                key = (side.scorer, side.role.value, f"{knob}={value!r}")
                found.setdefault(key, {**entry, "cases": []})["cases"].append(case.name or case.id)
    return list(found.values())


def installed_version(distribution: str) -> str | None:
    """The version of a distribution; None where it is not there or its metadata cannot be read."""
    try:
        return metadata.version(distribution)
    except Exception:  # PackageNotFoundError, or what importlib raises for a broken file
        return None

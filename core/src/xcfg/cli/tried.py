"""What the installed engines were tried with, and what of it an experiment asks for: for ``xcfg doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.model.json import Json, thaw
from xcfg.plugin.compatibility import Compatibility, Outcome, compatibility_of
from xcfg.plugin.inventory import PluginInfo, PluginState

if TYPE_CHECKING:
    from xcfg.cli.session import Session


def tried(plugins: Sequence[PluginInfo]) -> tuple[Compatibility, ...]:
    """The matrices of all usable plugins. Raises PluginError for a file that cannot be read."""
    usable = (item for item in plugins if item.state is PluginState.AVAILABLE)
    return tuple(found for item in usable for found in compatibility_of(item))


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
    """The version of a distribution; None where it is not there."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None

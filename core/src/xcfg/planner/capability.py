"""Whether a built pair can be run at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import evolve

from xcfg.model.case import Rejection, SideConfig
from xcfg.model.json import Json
from xcfg.model.knob import Knob
from xcfg.planner.sides import Side

UNSUPPORTED = "unsupported"


def unsupported(
    rollout: Side, training: Side, named: Collection[str], knobs: Mapping[str, Knob]
) -> tuple[Rejection | None, frozenset[str]]:
    """The rejection of a pair its scorers cannot apply, and the named knobs that mean nothing on any side of it."""
    sides = (rollout, training)
    idle = {
        name
        for name in named
        if name in knobs and any(_carries(side, knobs[name]) for side in sides)
        if all(name in side.idle for side in sides if _carries(side, knobs[name]))
    }
    reasons = [reason for side in sides for reason in side.unsupported]
    for name in sorted(idle):
        sentences = dict.fromkeys(side.idle[name] for side in sides if name in side.idle)
        reasons.append(f"{name} has no meaning on any side: {'; '.join(sentences)}")
    if not reasons:
        return None, frozenset()
    return Rejection(kind=UNSUPPORTED, reason="; ".join(dict.fromkeys(reasons))), frozenset(idle)


def with_idle(config: SideConfig, idle: Collection[str], values: Mapping[str, Json]) -> SideConfig:
    """The configuration with values that mean nothing put in.

    Only for a rejected pair: what was asked for must tell its id from that of the pair that runs.
    """
    own = {name: values[name] for name in idle if name in config.inapplicable}
    return evolve(config, knobs={**config.knobs, **own}) if own else config


def _carries(side: Side, knob: Knob) -> bool:
    return knob.applies_to(side.config.role.value)

"""Whether a built pair can be run at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import evolve

from xcfg.model.case import Rejection, SideConfig
from xcfg.model.json import Json
from xcfg.planner.sides import Side

UNSUPPORTED = "unsupported"


def idle_knobs(rollout: Side, training: Side) -> list[str]:
    """The named knobs that mean nothing on any side of the pair, sorted."""
    both = rollout.idle.keys() & training.idle.keys()
    return sorted({*rollout.idle_alone, *training.idle_alone, *both})


def refusals(rollout: Side, training: Side, idle: Collection[str]) -> list[tuple[str, str]]:
    """(knob, sentence) for each reason why the scorers cannot run the pair; equal sentences once."""
    sides = (rollout, training)
    if not (rollout.unsupported or training.unsupported or idle):
        return []
    reasons = [reason for side in sides for reason in side.unsupported]
    for name in idle:
        sentences = dict.fromkeys(side.idle[name] for side in sides if name in side.idle)
        reasons.append((name, f"{name} has no meaning on any side: {'; '.join(sentences)}"))
    return list({sentence: (name, sentence) for name, sentence in reasons}.values())


def unsupported(reasons: Collection[tuple[str, str]]) -> Rejection | None:
    """The rejection for reasons against a pair; None without any."""
    return Rejection(kind=UNSUPPORTED, reason="; ".join(said for _, said in reasons)) if reasons else None


def with_idle(config: SideConfig, idle: Collection[str], values: Mapping[str, Json]) -> SideConfig:
    """The configuration with values that mean nothing put in.

    Only for a rejected pair: what was asked for must tell its id from that of the pair that runs.
    """
    own = {name: values[name] for name in idle if name in config.inapplicable}
    return evolve(config, knobs={**config.knobs, **own}) if own else config

"""How core's knobs are written down, and the places they act at."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json
from xcfg.model.knob import Domain, Knob, Lifecycle, SourceClass, Target

Place = tuple[Target, Lifecycle]
"""Which side a knob belongs to, and when its value takes effect."""

ROLLOUT_ENGINE: Place = (Target.ROLLOUT, Lifecycle.ENGINE)
ROLLOUT_REQUEST: Place = (Target.ROLLOUT, Lifecycle.REQUEST)
TRAINING_ENGINE: Place = (Target.TRAINING, Lifecycle.ENGINE)
TRAINING_REQUEST: Place = (Target.TRAINING, Lifecycle.REQUEST)
BOTH_ENGINE: Place = (Target.BOTH, Lifecycle.ENGINE)
BOTH_REQUEST: Place = (Target.BOTH, Lifecycle.REQUEST)
BOTH_PROCESS: Place = (Target.BOTH, Lifecycle.PROCESS)
KERNEL_ENGINE: Place = (Target.KERNEL, Lifecycle.ENGINE)
KERNEL_REQUEST: Place = (Target.KERNEL, Lifecycle.REQUEST)
KERNEL_BUILD: Place = (Target.KERNEL, Lifecycle.BUILD)


def declare(
    name: str,
    summary: str,
    source_class: SourceClass,
    place: Place,
    domain: Domain,
    default: Json,
    cost: tuple[int, int, int],
    aligned: Mapping[str, Json],
) -> Knob:
    """A knob; ``cost`` is (semantic scope, intrusion, maintenance) of aligning it, 0 cheapest."""
    return Knob(
        name=name,
        summary=summary,
        source_class=source_class,
        targets=place[0],
        lifecycle=place[1],
        domain=domain,
        default=default,
        semantic_scope=cost[0],
        intrusion=cost[1],
        maintenance=cost[2],
        aligned=aligned,
    )

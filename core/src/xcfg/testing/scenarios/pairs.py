"""Two faults at once, of kinds that leave each other's traces alone."""

from __future__ import annotations

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.layout import Wants
from xcfg.testing.scenarios.scenario import SCENARIOS, Scenario

PAIRS = (
    ("temperature-rollout", "rank-training"),
    ("temperature-training", "padded-zero-scattered"),
    ("temperature-rollout", "boundary-end-roll"),
    ("temperature-training", "stale-tail-straddle"),
    ("kept-mass-top-p", "storage-bfloat16"),
    ("kept-mass-top-k", "boundary-start-leak"),
    ("kept-mass-min-p", "rank-adapter"),
    ("constant-offset-summed", "sequences-some"),
    ("constant-offset-summed", "boundary-end-roll"),
    ("constant-offset-small", "padded-zero-runs"),
    ("processed-bias", "left-padding-mask"),
    ("processed-training", "padded-zero-scattered"),
    ("monotone-softcap", "boundary-start-leak"),
    ("shift-rows", "storage-misstated"),
    ("pairing-swapped", "storage-float8"),
    ("length-response", "padded-zero-scattered"),
    ("packed-all", "boundary-end-roll"),
    ("rank-training", "boundary-end-roll"),
    ("stale-prefix-edge", "padded-zero-scattered"),
    ("duplicated-step-rows", "constant-offset-summed"),
    ("truncated-constant", "rank-training"),
    ("steps-growth-linear", "boundary-end-roll"),
)
"""Ids of two scenarios each. Where all tokens of a side are nonsense nothing else is to be seen: none of those."""


def loud(draft: Draft) -> None:
    """Keep both far above the floor: one must be seen once the other is taken out."""
    draft.loud = True


def _both(one: Wants, other: Wants) -> Wants:
    """The layout that both need. Where they ask for opposites the first has its way."""
    wish = {
        name: getattr(one, name) if getattr(one, name) is not None else getattr(other, name)
        for name in ("packed", "equal", "turns")
    }
    return Wants(steps=max(one.steps, other.steps), ranks=max(one.ranks, other.ranks), **wish)


def register() -> None:
    """Add the pairs to the scenarios."""
    for first, second in PAIRS:
        one, other = SCENARIOS[first], SCENARIOS[second]
        name = f"{first}+{second}"
        SCENARIOS[name] = Scenario(
            id=name,
            kinds=one.kinds + other.kinds,
            faults=(loud, *one.faults, *other.faults),
            accept=one.accept | other.accept,
            keep=one.keep | other.keep,
            wants=_both(one.wants, other.wants),
            text=f"{one.text.splitlines()[0]} At the same time: {other.text.splitlines()[0]}",
        )

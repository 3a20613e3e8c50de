"""Ablation profiles: which source classes keep their production differences while everything else is aligned."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xcfg.errors import InvalidInput
from xcfg.model.codec import unknown
from xcfg.model.experiment import Experiment, ProfileSpec
from xcfg.model.knob import SourceClass

_SINGLE = (SourceClass.ARITHMETIC, SourceClass.REDUCTION, SourceClass.REPRESENTATION)

PROFILES: Mapping[str, ProfileSpec] = MappingProxyType(
    {
        "A0": ProfileSpec(summary="Fully aligned reference", differ=((),)),
        "A1": ProfileSpec(summary="Arithmetic only", differ=((SourceClass.ARITHMETIC,),)),
        "A2": ProfileSpec(summary="Reduction and topology only", differ=((SourceClass.REDUCTION,),)),
        "A3": ProfileSpec(summary="Representation only", differ=((SourceClass.REPRESENTATION,),)),
        "A4": ProfileSpec(summary="Pairs of those classes", differ=tuple(itertools.combinations(_SINGLE, 2))),
        "A5": ProfileSpec(summary="Full production", differ=(tuple(SourceClass),)),
    }
)
"""Core's own profiles. They name classes, never knobs: a knob that a plugin adds is in those of its class."""


def find_profiles(experiment: Experiment, names: Sequence[str]) -> dict[str, ProfileSpec]:
    """The profiles of these names, core's or the experiment's. Raises InvalidInput with the nearest name."""
    known = {**PROFILES, **experiment.profiles}
    for name in names:
        if name not in known:
            hint = f"there are {', '.join(known)}"
            raise InvalidInput(unknown("profile", name, list(known)), where="--profile", hint=hint)
    return {name: known[name] for name in names}


def pairs_needed(passed: Mapping[str, bool]) -> bool:
    """Whether A4 is worth its engines: production fails, and the reference and every single class pass.

    ``passed`` is the verdict of the profiles that were judged. A reference that fails is to be debugged first, and a
    single class that fails explains production by itself.
    """
    return passed.get("A5") is False and all(passed.get(name) is True for name in ("A0", "A1", "A2", "A3"))

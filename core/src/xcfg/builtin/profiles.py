"""Core's ablation profiles: which source classes keep their production differences while all else is aligned."""

from __future__ import annotations

import itertools

from xcfg.model.experiment import ProfileSpec
from xcfg.model.knob import SourceClass
from xcfg.model.profile import ProfileDescriptor

_SINGLE = (SourceClass.ARITHMETIC, SourceClass.REDUCTION, SourceClass.REPRESENTATION)


def _profile(name: str, summary: str, *differ: tuple[SourceClass, ...]) -> ProfileDescriptor:
    return ProfileDescriptor(id=name, profile=ProfileSpec(summary=summary, differ=differ))


PROFILES = (
    _profile("A0", "Fully aligned reference", ()),
    _profile("A1", "Arithmetic only", (SourceClass.ARITHMETIC,)),
    _profile("A2", "Reduction and topology only", (SourceClass.REDUCTION,)),
    _profile("A3", "Representation only", (SourceClass.REPRESENTATION,)),
    _profile("A4", "Pairs of those classes", *itertools.combinations(_SINGLE, 2)),
    _profile("A5", "Full production", tuple(SourceClass)),
)
"""They name classes, never knobs: a knob that a plugin adds is in those of its class."""

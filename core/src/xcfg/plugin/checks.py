"""What must hold of the descriptors of one plugin, beyond their types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from xcfg.model.codec import unknown
from xcfg.model.experiment import SliceSpec
from xcfg.model.knob import CORE_PREFIXES, Knob, SourceClass
from xcfg.model.profile import ProfileDescriptor
from xcfg.plugin.check_builds import build_faults
from xcfg.plugin.contribution import Contribution, describe_key
from xcfg.plugin.inventory import CORE

_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_CLASSES = [item.value for item in SourceClass]


def faults(contribution: Contribution) -> Iterator[str]:
    """A sentence for each thing that is wrong with a plugin's descriptors."""
    counts = Counter(key for key, _ in contribution.items())
    for key, times in counts.items():
        if times > 1:
            yield f"{describe_key(key)} is declared {times} times"
    for knob in contribution.knobs:
        yield from _knob_faults(knob, contribution)
    for scorer in contribution.scorers:
        yield from _target_faults(f"scorer {scorer.id!r}", scorer.target)
        if not scorer.roles:
            yield f"scorer {scorer.id!r} plays no role"
    for item in contribution.materializers:
        if not item.inapplicable:
            yield from _target_faults(f"materializer of {item.knob!r} for {item.scorer!r}", item.target)
    for backend in contribution.backends:
        yield from _target_faults(f"backend {backend.id!r} of {backend.operator!r}", backend.target)
        yield from build_faults(backend, contribution.knobs)
    for named in contribution.profiles:
        yield from _profile_faults(named)
    for importer in contribution.importers:
        yield from _target_faults(f"importer {importer.id!r}", importer.target)
    for file_format in contribution.file_formats:
        yield from _target_faults(f"file format {file_format.id!r}", file_format.target)
        if not file_format.suffixes or not all(suffix.startswith(".") for suffix in file_format.suffixes):
            yield f"file format {file_format.id!r} needs suffixes that begin with a dot"
    for executor in contribution.executors:
        yield from _target_faults(f"executor {executor.id!r}", executor.target)


def _knob_faults(knob: Knob, contribution: Contribution) -> Iterator[str]:
    first, _, rest = knob.name.partition(".")
    if not rest:
        yield f"knob {knob.name!r} needs a prefix and a name, as in 'rollout.dtype'"
    if contribution.distribution == CORE:
        owned: tuple[str, ...] = CORE_PREFIXES
    else:
        owned = (contribution.plugin, contribution.plugin.replace("-", "_"))
    if first not in owned:
        wanted = f"must begin with {owned[-1] + '.'!r}"
        yield f"knob {knob.name!r} " + (
            f"is under a prefix that core owns; it {wanted}" if first in CORE_PREFIXES else wanted
        )
    try:
        normal = knob.domain.normalise(knob.default)
    except ValueError as error:
        yield f"default of knob {knob.name!r}: {error}"
    else:
        if normal != knob.default:
            yield f"default of knob {knob.name!r} is {knob.default!r}, its normal form is {normal!r}"


def _profile_faults(named: ProfileDescriptor) -> Iterator[str]:
    if not named.id.strip():
        yield "a profile or slice needs an id"
    if (named.profile is None) is (named.slice is None):
        yield f"{named.id!r} of xcfg_profiles must be exactly one of a profile and a slice"
    if named.profile is not None:
        if not named.profile.differ:
            yield f"profile {named.id!r} has no case; differ=[[]] is the fully aligned one"
        yield from _class_faults(f"profile {named.id!r}", [name for case in named.profile.differ for name in case])
    if named.slice is not None:
        yield from _slice_faults(named.id, named.slice)


def _slice_faults(name: str, part: SliceSpec) -> Iterator[str]:
    if not (part.baseline or part.axes or part.source_classes):
        yield f"slice {name!r} selects nothing by baseline, axes or source classes"
    if part.cases:
        yield f"slice {name!r} names cases, which belong to one experiment; give baseline, axes or source classes"
    yield from _class_faults(f"slice {name!r}", part.source_classes)


def _class_faults(what: str, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if name not in _CLASSES:
            yield f"{what}: {unknown('source class', name, _CLASSES)}"


def _target_faults(what: str, target: str) -> Iterator[str]:
    if not _TARGET.fullmatch(target):
        yield f"{what}: target {target!r} is not an import string such as 'package.module:Class'"

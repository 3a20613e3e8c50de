"""What must hold of the descriptors of one plugin, beyond their types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from xcfg.model.knob import CORE_PREFIXES, Knob
from xcfg.plugin.contribution import Contribution, describe_key
from xcfg.plugin.inventory import CORE

_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


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
    for importer in contribution.importers:
        yield from _target_faults(f"importer {importer.id!r}", importer.target)
    for file_format in contribution.file_formats:
        yield from _target_faults(f"file format {file_format.id!r}", file_format.target)
        if not file_format.suffixes or not all(suffix.startswith(".") for suffix in file_format.suffixes):
            yield f"file format {file_format.id!r} needs suffixes that begin with a dot"


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


def _target_faults(what: str, target: str) -> Iterator[str]:
    if not _TARGET.fullmatch(target):
        yield f"{what}: target {target!r} is not an import string such as 'package.module:Class'"

"""The cases of ablation profiles: everything aligned but the classes that a profile leaves at production."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import field, frozen

from xcfg.errors import InvalidInput
from xcfg.model.case import Rejection
from xcfg.model.experiment import ProfileSpec
from xcfg.model.json import Json, freeze, tupled
from xcfg.planner.alignment import Alignment, alignments, named
from xcfg.planner.assignment import same
from xcfg.planner.cases import Judge
from xcfg.planner.draft import Draft, changed_draft

_LEFT_OUT = 2
"""Alignments left out at most so that a case can run."""


@frozen(kw_only=True)
class ProfileCases:
    """One draft a case. ``aligned`` is everything that any profile may set.

    ``unaligned`` has, by knob, why it keeps its production value in all cases, or in those that are named.
    """

    drafts: tuple[Draft, ...] = field(converter=tupled)
    aligned: Mapping[str, Json] = field(converter=freeze)
    unaligned: Mapping[str, str] = field(converter=freeze)


def profile_cases(judge: Judge, profiles: Mapping[str, ProfileSpec]) -> ProfileCases:
    """The cases of profiles, by name. Raises InvalidInput where two alignments contradict each other.

    An alignment that keeps a case from being run (a veto, a constraint) is left out of it, up to two of them, and told.
    """
    found = alignments(judge.maker)
    left: dict[tuple[str, str], list[str]] = {}
    drafts = []
    for profile, spec in profiles.items():
        for classes in spec.differ:
            name = profile if len(spec.differ) == 1 else f"{profile} {'+'.join(classes)}"
            wanted = [item for item in found.found.values() if item.knob.source_class not in classes]
            kept, dropped = _that_run(wanted, judge)
            drafts.append(changed_draft(judge.maker.baseline, _together(kept), name))
            for item in dropped.items():
                left.setdefault(item, []).append(name)
    unaligned = dict(found.impossible)
    for (knob, reason), names in left.items():
        said = f"{reason} (in {', '.join(names)})"
        unaligned[knob] = f"{unaligned[knob]}; {said}" if knob in unaligned else said
    return ProfileCases(drafts=drafts, aligned=_together(found.found.values()), unaligned=unaligned)


def _together(wanted: Collection[Alignment]) -> dict[str, Json]:
    """What alignments set together."""
    sets: dict[str, Json] = {}
    for item in wanted:
        for name, value in item.sets.items():
            if not same(sets.setdefault(name, value), value):
                raise InvalidInput(
                    f"aligning {item.knob.name} sets {name} to {value!r}, and aligning another knob to {sets[name]!r}",
                    where=f"aligned.{item.knob.name}",
                    hint="state assignments that agree under `aligned`",
                )
    return sets


def _that_run(wanted: Sequence[Alignment], judge: Judge) -> tuple[list[Alignment], dict[str, str]]:
    """The alignments of a case that runs, and why each of the others is left out; all where none would help."""

    def rejected(left: Collection[Alignment]) -> Rejection | None:
        return judge.case(_together([item for item in wanted if item not in left])).rejected

    if rejected(()) is None:
        return list(wanted), {}
    for left in _fewest_first(wanted, named(judge.maker)):
        if rejected(left) is None:
            against = {item.knob.name: rejected([other for other in left if other is not item]) for item in left}
            reasons = {name: said.reason for name, said in against.items() if said is not None}
            return [item for item in wanted if item not in left], reasons
    return list(wanted), {}


def _fewest_first(wanted: Sequence[Alignment], spoken: Collection[str]) -> Iterator[tuple[Alignment, ...]]:
    """What to leave out, in the order of trying: first what the experiment does not speak of, then what costs most."""

    def reluctance(item: Alignment) -> tuple[bool, int, int, int, str]:
        knob = item.knob
        return knob.name in spoken, -knob.semantic_scope, -knob.intrusion, -knob.maintenance, knob.name

    ranked = sorted(wanted, key=reluctance)
    for number in range(1, _LEFT_OUT + 1):
        yield from itertools.combinations(ranked, number)

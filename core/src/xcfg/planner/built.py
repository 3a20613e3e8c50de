"""Built sides of an experiment's cases, each kept for the next case that has it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from xcfg.model.experiment import Experiment
from xcfg.model.json import Json
from xcfg.model.scorer import Role
from xcfg.planner.case_ids import CaseIds, Hash
from xcfg.planner.catalog import Catalog
from xcfg.planner.draft import Draft, Pick
from xcfg.planner.isolation import side_differences
from xcfg.planner.sides import Side, SideBuilder

_KEPT = 2048
"""Sides kept at once: those of two axes that meet in turn stay, and a long plan stays small."""


@frozen(kw_only=True)
class Built:
    """A side, its text in ids, the hash that a case with this rollout side begins with, and what the side changes."""

    side: Side
    text: bytes
    start: Hash
    changes: frozenset[str]


class Sides:
    """The sides of one experiment's cases."""

    def __init__(
        self, experiment: Experiment, catalog: Catalog, baseline: Draft, values: Mapping[str, Json], ids: CaseIds
    ) -> None:
        """``values`` is the baseline's value of every knob."""
        self._experiment = experiment
        self._catalog = catalog
        self._values = values
        self._baseline = baseline
        self.ids = ids
        self._others: dict[tuple[Role, Pick], _Kept] = {}
        self._usual = {role: self._new(role, self._pick(baseline, role)) for role in Role}

    def built(self, role: Role, draft: Draft) -> Built:
        """The side of a draft. Raises PluginError from lookups of ids."""
        pick, usual = self._pick(draft, role), self._usual[role]
        if pick is not usual.pick:
            if (role, pick) not in self._others:
                self._others[role, pick] = self._new(role, pick)
            usual = self._others[role, pick]
        return usual.built(draft.own)

    def means(self, name: str) -> bool:
        """Whether a knob has a meaning on a side of the baseline."""
        return any(kept.builder.means(name) for kept in self._usual.values())

    def _new(self, role: Role, pick: Pick) -> _Kept:
        usual = self._pick(self._baseline, role)
        builder = SideBuilder(role, pick, usual, self._values, self._experiment, self._catalog)
        reference = builder.build({}) if pick is usual else self._usual[role].built({}).side
        return _Kept(pick, builder, reference, self.ids)

    @staticmethod
    def _pick(draft: Draft, role: Role) -> Pick:
        return draft.rollout if role is Role.ROLLOUT else draft.training


class _Kept:
    """The sides of one role with one scorer and checkpoint, by what a case sets of their knobs."""

    def __init__(self, pick: Pick, builder: SideBuilder, reference: Side, ids: CaseIds) -> None:
        self.pick = pick
        self.builder = builder
        self._reference = reference
        self._ids = ids
        self._found: dict[tuple[tuple[str, Json], ...], Built] = {}

    def built(self, own: Mapping[str, Json]) -> Built:
        carried = self.builder.placer.knobs
        key = tuple([item for item in own.items() if item[0] in carried])
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _KEPT:
                self._found.clear()
            found = self._found[key] = self._build(own)
        return found

    def _build(self, own: Mapping[str, Json]) -> Built:
        side = self.builder.build(own)
        text = self._ids.text(side.config)
        changes = side_differences(side.config, self._reference.config)
        return Built(side=side, text=text, start=self._ids.start(text), changes=changes)

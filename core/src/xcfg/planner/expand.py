"""What the cases of each mode change, as drafts made one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from xcfg.model.experiment import Experiment, Mode
from xcfg.model.json import Json
from xcfg.planner.cases import CaseMaker, Judge
from xcfg.planner.counting import count, too_many
from xcfg.planner.draft import Draft, changed_draft
from xcfg.planner.factors import Factor, Level, factors
from xcfg.planner.one_at_a_time import one_at_a_time
from xcfg.planner.pairwise_cases import pairwise
from xcfg.planner.product import product
from xcfg.planner.select import Filter, accepted
from xcfg.planner.two_at_a_time import two_at_a_time
from xcfg.planner.zipped import zipped

_WHOLE = (Mode.ZIP, Mode.PAIRWISE)
"""Modes whose rows hang together: filters drop rows of the whole instead of narrowing the axes first."""


_FEW = 1000
"""Cases that are made in no time: they are counted with the explicit ones among them, each once."""


@frozen(kw_only=True)
class Expansion:
    """The axes of an experiment in one mode. ``fixed`` is what every case holds besides; both are of changes only."""

    mode: Mode
    factors: tuple[Factor, ...]
    fixed: Level
    maker: CaseMaker
    filters: Sequence[Filter]

    @classmethod
    def of(cls, experiment: Experiment, maker: CaseMaker, filters: Sequence[Filter]) -> Expansion:
        """The expansion in the experiment's mode."""
        found = factors(experiment, maker.changes)
        if experiment.mode not in _WHOLE:
            found = tuple(_narrowed(factor, filters, maker.values) for factor in found)
        fixed = maker.changes(experiment.fixed)
        return cls(mode=experiment.mode, factors=found, fixed=fixed, maker=maker, filters=filters)

    def check(self, max_cases: int) -> None:
        """Raise InvalidInput where there are more cases by far, without making any; few are counted when made."""
        number = count(self.mode, self.factors, self.filters, {**self.maker.values, **self.fixed})
        if number > max(max_cases, _FEW):
            raise too_many(number, max_cases, self.mode, at_least=self.mode is Mode.PAIRWISE)

    def drafts(self, judge: Judge) -> Iterator[Draft]:
        """One draft a case that changes something, the fixed alone first; nothing is made before it is asked for."""
        if self.fixed:
            yield changed_draft(self.maker.baseline, self.fixed)
        for level in self._levels(judge):
            if level:
                yield changed_draft(self.maker.baseline, {**self.fixed, **level} if self.fixed else level)

    def _levels(self, judge: Judge) -> Iterator[Level]:
        if self.mode is Mode.PRODUCT:
            return product(self.factors)
        if self.mode is Mode.ZIP:
            return zipped(self.factors)
        if self.mode is Mode.TWO_AT_A_TIME:
            return two_at_a_time(self.factors)
        if self.mode is Mode.PAIRWISE:  # by name: rows must not depend on the order of keys in the file
            return pairwise(sorted(self.factors, key=lambda factor: factor.name), self.fixed, judge)
        return one_at_a_time(self.factors)


def _narrowed(factor: Factor, filters: Sequence[Filter], values: Mapping[str, Json]) -> Factor:
    """Without the levels that a filter drops anyway, so that cases are counted after filtering."""
    kept = [
        level
        for level in factor.levels
        if accepted(filters, {name: level.get(name, values.get(name)) for name in factor.knobs})
    ]
    return evolve(factor, levels=kept)

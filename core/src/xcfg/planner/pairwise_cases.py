"""The rows of a covering array as cases: of values that can be run, clear of constraints and of the plugins' vetoes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from attrs import evolve

from xcfg.planner.cases import Judge
from xcfg.planner.constraints import forbidden_levels
from xcfg.planner.factors import Factor, Level, joined
from xcfg.planner.space import Row
from xcfg.planner.vetoes import rows_that_run


def pairwise(factors: Sequence[Factor], fixed: Level, judge: Judge) -> Iterator[Level]:
    """What each case changes besides ``fixed``.

    Every two values of two factors meet in a case that runs, if there is one: the pairs of the unchanged case count,
    and constraints, values beyond the scorers and vetoes are seen to. Then follows what cannot be run, as cases that
    say why: for each pair of values that only vetoed rows hold one of those, and each value that is in no row.
    """
    kept = [evolve(factor, levels=_usable(factor, judge)) for factor in factors]
    rows = list(_rows([factor for factor in kept if factor.levels], fixed, judge))
    yield from rows
    for factor in factors:
        for level in factor.changes:
            if not any(level.items() <= row.items() for row in rows):
                yield level


def _usable(factor: Factor, judge: Judge) -> list[Level]:
    return [level for level in factor.levels if not judge.maker.refused(level, factor.knobs)]


def _rows(factors: Sequence[Factor], fixed: Level, judge: Judge) -> Iterator[Level]:
    rules = forbidden_levels(judge.maker.experiment.constraints, factors, {**judge.maker.values, **fixed})
    unchanged = {index: factor.levels.index({}) for index, factor in enumerate(factors) if {} in factor.levels}

    def changes(row: Row) -> Level:
        return joined(factor.levels[level] for factor, level in zip(factors, row, strict=True))

    @cache
    def vetoed(row: Row) -> bool:
        return judge.vetoed({**fixed, **changes(row)})

    given = [unchanged] if judge.case(fixed).rejected is None else []
    for row in rows_that_run([len(factor.levels) for factor in factors], rules, given, vetoed):
        yield changes(row)

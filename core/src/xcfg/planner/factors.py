"""What the planner combines: axes of one knob, and linked axes that move several together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import field, frozen

from xcfg.model.experiment import Experiment
from xcfg.model.json import Json, tupled

Level = Mapping[str, Json]
"""What one position of a factor changes, knob to value; empty where that is the baseline itself."""


@frozen(kw_only=True)
class Factor:
    """``levels`` in the order of the file; ``name`` is the knob's or the linked axis's."""

    name: str
    knobs: tuple[str, ...] = field(converter=tupled)
    levels: tuple[Level, ...] = field(converter=tupled)

    @property
    def changes(self) -> tuple[Level, ...]:
        """The levels that are not the baseline."""
        return tuple(level for level in self.levels if level)


def factors(experiment: Experiment, changes: Callable[[Mapping[str, Json]], Level]) -> tuple[Factor, ...]:
    """The axes and then the linked axes of an experiment; ``changes`` leaves out what is the baseline's."""
    tables = {name: {name: values} for name, values in experiment.axes.items()} | dict(experiment.linked)
    return tuple(Factor(name=name, knobs=table, levels=_levels(table, changes)) for name, table in tables.items())


def joined(levels: Iterable[Level]) -> dict[str, Json]:
    """What levels of several factors change together."""
    own: dict[str, Json] = {}
    for level in levels:
        own.update(level)
    return own


def _levels(table: Mapping[str, Sequence[Json]], changes: Callable[[Mapping[str, Json]], Level]) -> list[Level]:
    return [changes(dict(zip(table, row, strict=True))) for row in zip(*table.values(), strict=True)]

"""The experiment's own rules about which combinations make sense."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from xcfg.model.case import Rejection
from xcfg.model.json import Json
from xcfg.model.knob import Constraint
from xcfg.planner.factors import Factor

CONSTRAINT = "constraint"
_KEPT = 4096

_Literal = tuple[str, Callable[[Json], bool]]


class Rules:
    """The constraints of one experiment; combinations of the knobs they speak of are judged once."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        self._constraints = constraints
        self._names = sorted({name for item in constraints for name in (*item.when, *item.require)})
        self._judged: dict[tuple[Json, ...], Rejection | None] = {}

    def broken(self, values: Mapping[str, Json]) -> Rejection | None:
        """The rejection of a case with these knob values, with the reason of every rule it breaks.

        Which knobs have a value is the same in all cases of an experiment.
        """
        key = tuple([values.get(name) for name in self._names])
        if key not in self._judged:
            if len(self._judged) >= _KEPT:
                self._judged.clear()
            reasons = [constraint.reason for constraint in self._constraints if constraint.violated(values)]
            self._judged[key] = Rejection(kind=CONSTRAINT, reason="; ".join(reasons)) if reasons else None
        return self._judged[key]


def forbidden_levels(
    constraints: Sequence[Constraint], factors: Sequence[Factor], values: Mapping[str, Json]
) -> list[dict[int, set[int]]]:
    """The combinations of levels that break a constraint, each as factor index to level indices.

    ``values`` are those of knobs that no factor varies, and of the others where a level leaves them alone.
    """
    found = []
    for constraint in constraints:
        for literals in _violations(constraint, values):
            combination = _combination(literals, factors, values)
            if combination is not None:
                found.append(combination)
    return found


def _violations(constraint: Constraint, values: Mapping[str, Json]) -> Iterator[list[_Literal]]:
    """What holds together where the constraint is violated, once for each knob it requires something of."""
    when: list[_Literal] = [(name, allowed.__contains__) for name, allowed in constraint.when.items()]
    for name, allowed in constraint.require.items():
        if name in values:
            yield [*when, (name, partial(_outside, allowed))]


def _outside(allowed: Sequence[Json], value: Json) -> bool:
    return value not in allowed


def _combination(
    literals: Sequence[_Literal], factors: Sequence[Factor], values: Mapping[str, Json]
) -> dict[int, set[int]] | None:
    """The levels for which all literals hold; None where one can never hold."""
    place = {name: index for index, factor in enumerate(factors) for name in factor.knobs}
    found: dict[int, set[int]] = {}
    for name, holds in literals:
        usual = values.get(name)
        if name not in place:
            if not holds(usual):
                return None
            continue
        levels = factors[place[name]].levels
        wanted = {index for index, level in enumerate(levels) if holds(level.get(name, usual))}
        found[place[name]] = found.get(place[name], wanted) & wanted
    return found

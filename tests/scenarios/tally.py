"""Counting the answers of the scenario run: confusion matrix, rates with their Wilson intervals, what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

from xcfg.testing.scenarios import Scenario, Shape

RIGHT_FIRST = 0.95
FALSE_POSITIVES = 0.01
NO_FAULT = {"floor"}
"""First answers that give a clean control no fault. ``unknown`` says above the floor, and so counts as a fault."""


@dataclass(frozen=True)
class Answer:
    """The kinds that were named for one instance, best first; ``few`` where it was said to be too small."""

    scenario: Scenario
    shape: Shape
    number: int
    named: tuple[str, ...]
    few: bool
    seconds: float

    @property
    def clean(self) -> bool:
        """Nothing is wrong with the instance."""
        return self.scenario.kinds == ("floor",)

    @property
    def right(self) -> bool:
        """The first kind that was named is a right one."""
        return self.named[0] in (NO_FAULT if self.clean else self.scenario.right)


def wilson(count: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a rate of ``count`` in ``total`` (E. B. Wilson, 1927), at 95% unless told otherwise."""
    if not total:
        return 0.0, 1.0
    share, square = count / total, z * z
    middle = (share + square / (2 * total)) / (1 + square / total)
    reach = z * sqrt(share * (1 - share) / total + square / (4 * total * total)) / (1 + square / total)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def rate(count: int, total: int) -> str:
    """A rate with its interval, in percent."""
    if not total:
        return "none drawn"
    low, high = wilson(count, total)
    return f"{count}/{total} = {count / total:.1%} (95% interval {low:.1%} to {high:.1%})"


@dataclass(frozen=True)
class Tally:
    """Every answer, and the figures that follow from them."""

    answers: list[Answer]

    @cached_property
    def single(self) -> list[Answer]:
        """Instances with one fault."""
        return [one for one in self.answers if len(one.scenario.kinds) == 1 and not one.clean]

    @cached_property
    def clean(self) -> list[Answer]:
        """Clean controls."""
        return [one for one in self.answers if one.clean]

    @cached_property
    def double(self) -> list[Answer]:
        """Instances with two faults."""
        return [one for one in self.answers if len(one.scenario.kinds) == 2]

    def matrix(self) -> str:
        """Rows: the true kind. In each, the first answers and how often they came, most often first."""
        lines = ["\nkind                    right first   answers"]
        for kind in dict.fromkeys(one.scenario.kind for one in self.single + self.clean):
            mine = [one for one in self.single + self.clean if one.scenario.kind == kind]
            lines.append(f"{kind:24}{_share(mine)}   {_named(mine)}")
        return "\n".join(lines)

    def scenarios(self) -> str:
        """The same by scenario."""
        lines = ["\nscenario                                        right first   answers"]
        for name in dict.fromkeys(one.scenario.id for one in self.answers):
            mine = [one for one in self.answers if one.scenario.id == name]
            lines.append(f"{name:48}{_share(mine)}   {_named(mine)}")
        return "\n".join(lines)

    def summary(self) -> str:
        """The rates."""
        both = sum(set(one.scenario.kinds) <= set(one.named) for one in self.double)
        third = sum(bool(set(one.named) - one.scenario.right) for one in self.double)
        exact = sum(one.named[0] == one.scenario.kind for one in self.single)
        slowest = max((one.seconds for one in self.answers), default=0.0)
        return "\n".join(
            [
                "",
                f"one fault, right kind first:        {rate(sum(one.right for one in self.single), len(self.single))}",
                f"  of these the kind itself:         {rate(exact, len(self.single))}",
                f"clean control given a fault:        {rate(sum(not o.right for o in self.clean), len(self.clean))}",
                f"two faults, one of them first:      {rate(sum(one.right for one in self.double), len(self.double))}",
                f"two faults, both named:             {rate(both, len(self.double))}",
                f"two faults, a third kind named too: {rate(third, len(self.double))}",
                f"said to be too few:                 {rate(sum(o.few for o in self.answers), len(self.answers))}",
                f"slowest diagnosis:                  {slowest:.2f} s",
            ]
        )

    def faults(self) -> list[str]:
        """Which of the stated rates are missed."""
        found = []
        for what, group in (("one fault", self.single), ("two faults", self.double)):
            right = sum(one.right for one in group)
            if group and right < RIGHT_FIRST * len(group):
                found.append(f"{what}, right first in {rate(right, len(group))}; stated {RIGHT_FIRST:.0%}")
        wrong = sum(not one.right for one in self.clean)
        if self.clean and wrong >= FALSE_POSITIVES * len(self.clean):
            found.append(f"clean controls given a fault: {rate(wrong, len(self.clean))}; stated below 1%")
        return found

    def figures(self) -> dict[str, object]:
        """Counts for a file: by group, by scenario, and each wrong answer with what draws it again."""
        groups = {"one_fault": self.single, "clean": self.clean, "two_faults": self.double}
        scenarios = dict.fromkeys(one.scenario.id for one in self.answers)
        return {
            "groups": {name: _count(group) for name, group in groups.items()},
            "scenarios": {name: _count([o for o in self.answers if o.scenario.id == name]) for name in scenarios},
            "wrong": [
                {"scenario": one.scenario.id, "number": one.number, "named": one.named, "dtype": one.shape.dtype}
                for one in self.answers
                if not one.right
            ],
        }


def _count(group: list[Answer]) -> dict[str, object]:
    named = Counter(one.named[0] for one in group)
    return {"drawn": len(group), "right": sum(one.right for one in group), "first": dict(named.most_common())}


def _share(group: list[Answer]) -> str:
    return f"{sum(one.right for one in group):>4}/{len(group):<4}{sum(one.right for one in group) / len(group):>6.0%}"


def _named(group: Iterable[Answer]) -> str:
    counts = Counter(one.named[0] for one in group)
    return ", ".join(f"{kind} {count}" for kind, count in counts.most_common())

"""A scenario: one fault, or two, or none, that can be drawn again and again with other numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import field, frozen

from xcfg.diagnosis.observed import Observed
from xcfg.testing.scenarios.draft import Draft, begin
from xcfg.testing.scenarios.finish import finish
from xcfg.testing.scenarios.layout import Shape, Wants

Fault = Callable[[Draft], None]


@frozen(kw_only=True)
class Scenario:
    """``kinds`` are the right answers: one kind, or the two of two faults. ``accept`` adds what is right as well.

    ``keep`` names the metadata without which nobody could tell; ``cause`` the ids of real reports; ``text`` what the
    user sees and where it comes from.
    """

    id: str
    kinds: tuple[str, ...]
    faults: tuple[Fault, ...]
    accept: frozenset[str] = frozenset()
    keep: frozenset[str] = frozenset()
    wants: Wants = field(factory=Wants)
    cause: tuple[str, ...] = ()
    text: str = ""

    @property
    def kind(self) -> str:
        """The kind of the first fault; ``floor`` of a clean control."""
        return self.kinds[0]

    @property
    def right(self) -> frozenset[str]:
        """Every kind that is a right first answer."""
        return self.accept | set(self.kinds)

    def drafted(self, generator: np.random.Generator, shape: Shape) -> tuple[Draft, Observed]:
        """An instance, and what it was made of."""
        draft = begin(generator, shape, self.wants)
        for fault in self.faults:
            fault(draft)
        return draft, finish(draft, self.keep)

    def draw(self, generator: np.random.Generator, shape: Shape) -> Observed:
        """An instance: the judged tokens of two sides, with what happened to be recorded beside them."""
        return self.drafted(generator, shape)[1]


SCENARIOS: dict[str, Scenario] = {}
"""All scenarios by id."""


def scenario(
    id: str,
    kind: str,
    *,
    accept: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    wants: Wants | None = None,
    cause: tuple[str, ...] = (),
) -> Callable[[Fault], Fault]:
    """Register a fault as a scenario; its docstring becomes the scenario's text."""

    def register(fault: Fault) -> Fault:
        SCENARIOS[id] = Scenario(
            id=id,
            kinds=(kind,),
            faults=(fault,),
            accept=frozenset(accept),
            keep=frozenset(keep),
            wants=wants or Wants(),
            cause=cause,
            text=fault.__doc__ or "",
        )
        return fault

    return register

"""What is searched: the knobs that may be aligned, with what orders the work and what ranks the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from numbers import Real

from attrs import field, frozen

from xcfg.errors import Fault, InvalidInput
from xcfg.model.json import Json, freeze, tupled
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import Role


def _roles(sides: Iterable[Role]) -> frozenset[Role]:
    return frozenset(sides)


@frozen(kw_only=True)
class AlignableKnob:
    """A knob whose production value may be replaced by one of its ``candidates``, best liked first.

    A candidate is whatever the caller sets: a value, or an assignment of several knobs. ``sides`` are the side
    configurations it is part of; a knob on both changes both at once. ``semantic_scope``, ``cost`` (any unit, added up
    over knobs), ``intrusion`` and ``maintenance`` rank answers, see :mod:`xcfg.analyzer.search.order`.
    ``suspicion`` orders the work only: the larger, the likelier a cause. ``logical`` marks a knob that brings semantic
    identity rather than numerical agreement.
    """

    name: str
    candidates: tuple[Json, ...] = field(converter=freeze)
    sides: frozenset[Role] = field(converter=_roles)
    lifecycle: Lifecycle = Lifecycle.ENGINE
    semantic_scope: int = 0
    cost: float = 0.0
    intrusion: int = 0
    maintenance: int = 0
    suspicion: float = 0.0
    logical: bool = False


@frozen(kw_only=True)
class Problem:
    """The knobs in which production differs from its aligned reference. Raises InvalidInput for a fault in them."""

    knobs: tuple[AlignableKnob, ...] = field(converter=tupled)

    def __attrs_post_init__(self) -> None:
        """Every fault at once."""
        faults = [] if self.knobs else [Fault(message="there is no knob to align", where="search", hint="name axes")]
        names = [knob.name for knob in self.knobs]
        for knob in self.knobs:
            if names.count(knob.name) > 1:
                faults.append(Fault(message="the knob is named twice", where=knob.name))
            if not knob.candidates:
                faults.append(Fault(message="the knob has no aligned value to try", where=knob.name))
            if any(item in knob.candidates[:at] for at, item in enumerate(knob.candidates)):
                faults.append(Fault(message="an aligned value is listed twice", where=knob.name))
            if not knob.sides:
                faults.append(Fault(message="the knob belongs to neither side", where=knob.name))
            if knob.semantic_scope < 0:
                faults.append(Fault(message=f"the semantic scope {knob.semantic_scope} is below 0", where=knob.name))
            if not isinstance(knob.cost, Real) or not 0 <= knob.cost < float("inf"):
                faults.append(Fault(message=f"the cost {knob.cost} is not a finite number from 0", where=knob.name))
        if faults:
            raise InvalidInput(faults=dict.fromkeys(faults))


class Word(StrEnum):
    """How much a claim says of an alignment that passes.

    ``minimum``: every smaller set was executed, or is excluded by the stated assumption, and none passes.
    ``irreducible``: the same of every proper subset of its knobs, at any of their candidate values.
    ``sufficient``: it passes; the search stopped before its subsets were all judged.
    """

    MINIMUM = "minimum"
    IRREDUCIBLE = "irreducible"
    SUFFICIENT = "sufficient"


@frozen(kw_only=True)
class Options:
    """How far the search goes.

    ``prove`` is the word at which it may stop. ``monotone`` states the assumption that aligning fewer knobs never turns
    a failing case into a passing one; a contradiction among the outcomes withdraws it. ``budget`` bounds engine
    constructions (None: unbounded). A verdict whose ``max_abs_dlogp`` is nearer than ``margin`` times the threshold to
    it is repeated ``repeats`` times before it is trusted; 0 for either trusts every first verdict. ``keeps_engines``:
    the engine of a side stays until another is built, so that request-time knobs cost nothing on it.
    """

    prove: Word = Word.IRREDUCIBLE
    monotone: bool = False
    budget: int | None = None
    margin: float = 0.05
    repeats: int = 2
    keeps_engines: bool = True

    def __attrs_post_init__(self) -> None:
        """Refuse what would silently mean something else."""
        if self.prove is Word.SUFFICIENT:
            raise InvalidInput("a search proves minimum or irreducible, not merely sufficient", where="prove")
        if self.budget is not None and self.budget < 0:
            raise InvalidInput(f"a budget of {self.budget} engine constructions is below 0", where="budget")
        if not 0 <= self.margin < 1:
            raise InvalidInput(f"a margin of {self.margin} of the threshold is not in [0, 1)", where="margin")
        if self.repeats < 0:
            raise InvalidInput(f"{self.repeats} repeats is below 0", where="repeats")


Alignment = Mapping[str, Json]
"""Knob name to the candidate it is set to; knobs that are absent keep their production values."""

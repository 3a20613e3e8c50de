"""What a search ends with: the answer, what it rests on and what was not tried."""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from xcfg.analyzer.ladder import Rung
from xcfg.analyzer.search.outcome import Observed
from xcfg.analyzer.search.problem import Alignment, Word
from xcfg.model.json import freeze, tupled

MONOTONE = (
    "aligning fewer knobs never turns a failing case into a passing one: sets inside an executed failing set are taken "
    "to fail"
)
"""The assumption that a claim may rest on, as it is stated."""


class Stopped(StrEnum):
    """Why a search has no further question."""

    PROVEN = "proven"
    PRODUCTION_PASSES = "production_passes"
    REFERENCE_FAILS = "reference_fails"
    NO_VERDICT = "no_verdict"
    NOTHING_PASSES = "nothing_passes"
    UNJUDGED_PARTS = "unjudged_parts"
    BUDGET = "budget"
    UNFINISHED = "unfinished"


@frozen(kw_only=True)
class Untried:
    """Smaller sets than the answer: all of them, and those without a verdict that no assumption excludes.

    ``smaller`` and ``executed`` count alignments (sets of knobs at given candidates). ``first`` is one that is open,
    None where every smaller one was executed or is excluded.
    """

    smaller: int
    executed: int
    first: Alignment | None = None


@frozen(kw_only=True)
class Executions:
    """What the search cost. ``run`` took a side run, ``reused`` was on disk or formed from side runs that were."""

    run: int
    reused: int
    constructions: int
    exhaustive_would_be: int


@frozen(kw_only=True)
class Claim:
    """The answer of a search.

    ``aligned`` passes and ``word`` says how much is known of smaller sets; both None where nothing passes.
    ``assumption`` is the sentence that ``word`` rests on beside executed cases, empty where it rests on those alone.
    ``proof`` are production, the answer and its parts as executed. ``minimal_sets`` are the passing sets of which no
    part is left to try, the answer first. ``unsettled`` sets did not give the same verdict twice, ``unsupported`` ones
    cannot be built here, ``unjudged`` ones broke. ``contradictions`` are pairs where aligning more made it fail.
    """

    word: Word | None = None
    stopped: Stopped
    reason: str
    aligned: Alignment | None = None
    still_different: tuple[str, ...] = field(default=(), converter=tupled)
    rung: Rung
    assumption: str = ""
    minimal_sets: tuple[Alignment, ...] = field(default=(), converter=freeze)
    proof: tuple[Observed, ...] = field(default=(), converter=tupled)
    untried: Untried | None = None
    unsettled: tuple[Alignment, ...] = field(default=(), converter=freeze)
    unsupported: tuple[Alignment, ...] = field(default=(), converter=freeze)
    unjudged: tuple[Alignment, ...] = field(default=(), converter=freeze)
    contradictions: tuple[tuple[Alignment, Alignment], ...] = field(default=(), converter=freeze)
    executions: Executions

    @property
    def verified(self) -> bool:
        """Whether every part of the answer was executed, or is excluded by the stated assumption."""
        return self.word in (Word.MINIMUM, Word.IRREDUCIBLE)

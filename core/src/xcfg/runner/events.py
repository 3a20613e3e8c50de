"""What an execution tells while it runs: frozen values, each with one line for people."""

from __future__ import annotations

from typing import ClassVar

from attrs import field, frozen

from xcfg.model.case import SideConfig
from xcfg.model.json import tupled
from xcfg.model.scorer import Role


@frozen(kw_only=True)
class EnginePlanned:
    """An engine that is to be built for ``sides`` side runs; ``samples`` when it also samples the token batch."""

    role: Role
    scorer: str
    sides: int
    samples: bool


@frozen(kw_only=True)
class Scheduled:
    """What is left to do: ``engines`` in their order, ``jobs`` at once, ``sides`` side runs for ``cases`` cases.

    ``reused`` are the engines that are not built because everything they would score is on disk.
    """

    kind: ClassVar[str] = "scheduled"

    engines: tuple[EnginePlanned, ...] = field(converter=tupled)
    reused: int
    sides: int
    cases: int
    jobs: int

    def describe(self) -> str:
        """One line."""
        return f"{len(self.engines)} engines to build for {self.sides} side runs of {self.cases} cases"


@frozen(kw_only=True)
class SideReused:
    """A sealed attempt on disk is taken as it is."""

    kind: ClassVar[str] = "side_reused"

    config: SideConfig
    side_id: str
    attempt: int

    def describe(self) -> str:
        """One line."""
        return f"reused {self.config.role} {self.config.scorer} {self.side_id} from attempt {self.attempt}"


@frozen(kw_only=True)
class AttemptRefused:
    """A stored attempt is not accepted and stays on disk; the side runs again."""

    kind: ClassVar[str] = "attempt_refused"

    side_id: str
    attempt: int
    reason: str

    def describe(self) -> str:
        """One line."""
        return f"refused attempt {self.attempt} of {self.side_id}: {self.reason}"


@frozen(kw_only=True)
class GroupStarted:
    """An engine is launched for ``sides`` side runs; ``samples`` when it also samples the token batch."""

    kind: ClassVar[str] = "engine_started"

    number: int
    total: int
    config: SideConfig
    sides: int
    samples: bool

    def describe(self) -> str:
        """One line."""
        work = f"{self.sides} side run{'s' if self.sides != 1 else ''}"
        work = f"the token batch and {work}" if self.samples else work
        return f"engine {self.number} of {self.total}: {self.config.role} {self.config.scorer} for {work}"


@frozen(kw_only=True)
class TokensFrozen:
    """The token batch is on disk, or was found there."""

    kind: ClassVar[str] = "tokens_frozen"

    digest: str
    sequences: int
    active_tokens: int

    def describe(self) -> str:
        """One line."""
        return f"tokens {self.digest[:16]}: {self.sequences} sequences, {self.active_tokens} active tokens"


@frozen(kw_only=True)
class SideSealed:
    """A side run is complete and sealed."""

    kind: ClassVar[str] = "side_sealed"

    config: SideConfig
    side_id: str
    attempt: int

    def describe(self) -> str:
        """One line."""
        return f"sealed {self.config.role} {self.config.scorer} {self.side_id} attempt {self.attempt}"


@frozen(kw_only=True)
class SideFailed:
    """A side run has no result."""

    kind: ClassVar[str] = "side_failed"

    config: SideConfig
    side_id: str
    status: str
    reason: str

    def describe(self) -> str:
        """One line."""
        return f"{self.status} {self.config.role} {self.config.scorer} {self.side_id}: {self.reason}"


@frozen(kw_only=True)
class CaseExecuted:
    """Both sides of a case came to an end, ``number`` cases of ``total`` so far; it is judged after the last."""

    kind: ClassVar[str] = "case_executed"

    case: str
    number: int
    total: int

    def describe(self) -> str:
        """One line."""
        return f"case {self.case}: {self.number} of {self.total} cases executed"


@frozen(kw_only=True)
class GroupFinished:
    """An engine's processes are gone, also those of further tries.

    ``start_s``: seconds that were spent on neither sampling nor scoring; ``score_s``: seconds that each sealed side run
    took to score. Both are measured by the engine's processes.
    """

    kind: ClassVar[str] = "engine_finished"

    number: int
    total: int
    config: SideConfig
    seconds: float
    failed: int
    start_s: float
    score_s: tuple[float, ...] = field(converter=tupled)

    def describe(self) -> str:
        """One line."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"engine {self.number} of {self.total} finished in {self.seconds:.1f} s{failed}"


Event = (
    Scheduled
    | SideReused
    | AttemptRefused
    | GroupStarted
    | TokensFrozen
    | SideSealed
    | SideFailed
    | CaseExecuted
    | GroupFinished
)

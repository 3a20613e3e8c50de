"""What an execution tells while it runs: frozen values, each with one line for people."""

from __future__ import annotations

from attrs import frozen

from xcfg.model.case import SideConfig


@frozen(kw_only=True)
class SideReused:
    """A sealed attempt on disk is taken as it is."""

    config: SideConfig
    side_id: str
    attempt: int

    def describe(self) -> str:
        """One line."""
        return f"reused {self.config.role} {self.config.scorer} {self.side_id} from attempt {self.attempt}"


@frozen(kw_only=True)
class AttemptRefused:
    """A stored attempt is not accepted and stays on disk; the side runs again."""

    side_id: str
    attempt: int
    reason: str

    def describe(self) -> str:
        """One line."""
        return f"refused attempt {self.attempt} of {self.side_id}: {self.reason}"


@frozen(kw_only=True)
class GroupStarted:
    """An engine is launched for ``sides`` side runs; ``samples`` when it also samples the token batch."""

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

    digest: str
    sequences: int
    active_tokens: int

    def describe(self) -> str:
        """One line."""
        return f"tokens {self.digest[:16]}: {self.sequences} sequences, {self.active_tokens} active tokens"


@frozen(kw_only=True)
class SideSealed:
    """A side run is complete and sealed."""

    config: SideConfig
    side_id: str
    attempt: int

    def describe(self) -> str:
        """One line."""
        return f"sealed {self.config.role} {self.config.scorer} {self.side_id} attempt {self.attempt}"


@frozen(kw_only=True)
class SideFailed:
    """A side run has no result."""

    config: SideConfig
    side_id: str
    status: str
    reason: str

    def describe(self) -> str:
        """One line."""
        return f"{self.status} {self.config.role} {self.config.scorer} {self.side_id}: {self.reason}"


@frozen(kw_only=True)
class GroupFinished:
    """An engine's processes are gone."""

    number: int
    total: int
    seconds: float
    failed: int

    def describe(self) -> str:
        """One line."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"engine {self.number} of {self.total} finished in {self.seconds:.1f} s{failed}"


Event = SideReused | AttemptRefused | GroupStarted | TokensFrozen | SideSealed | SideFailed | GroupFinished

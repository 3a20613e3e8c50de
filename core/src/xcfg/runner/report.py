"""What an execution gave: side runs by configuration, tokens, engines, time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from xcfg.model.attempt import Measured, SideFailure, SideResult
from xcfg.model.case import SideConfig
from xcfg.model.json import freeze, tupled
from xcfg.model.result import Finding
from xcfg.model.sample import TokenBatch
from xcfg.runner.binding import Binding


@frozen(kw_only=True)
class SideRun:
    """The newest attempt of one side configuration: either ``result`` or ``failure`` is set.

    ``side_id`` is empty and ``attempt`` 0 where there were no tokens to score. ``path`` is the attempt's folder.
    ``reused`` is True where the attempt was on disk before this execution. ``findings`` report what happened to the
    process after the result was sealed.
    """

    config: SideConfig
    side_id: str = ""
    attempt: int = 0
    path: Path | None = None
    result: SideResult | None = None
    failure: SideFailure | None = None
    measured: Measured = field(factory=Measured)
    findings: tuple[Finding, ...] = field(default=(), converter=tupled)
    reused: bool = False


@frozen(kw_only=True)
class Engines:
    """``distinct`` engine configurations of the plan, those ``constructed`` now, those whose runs were all on disk."""

    distinct: int
    constructed: int
    reused_from_disk: int


@frozen(kw_only=True)
class Refused:
    """A sealed attempt that was not accepted, kept on disk as it is."""

    side_id: str
    attempt: int
    reason: str


@frozen(kw_only=True)
class RunReport:
    """All side runs of a plan by :meth:`SideConfig.digest`. ``wall_s`` and ``engine_s`` are seconds.

    ``engine_s`` sums the lifetimes of the launched engines, so it exceeds ``wall_s`` where several ran at once.
    ``alone`` holds, by case id, the side runs executed for one case alone; ``sides`` then holds one of each.
    """

    identity: Binding
    tokens: TokenBatch | None
    sides: Mapping[str, SideRun] = field(converter=freeze)
    engines: Engines
    wall_s: float
    engine_s: float
    refused: tuple[Refused, ...] = field(default=(), converter=tupled)
    alone: Mapping[str, Mapping[str, SideRun]] = field(factory=dict, converter=freeze)

    @property
    def fake(self) -> bool:
        """True where any result comes from a fake scorer or operator."""
        return any(run.result is not None and run.result.fake for run in self.sides.values())

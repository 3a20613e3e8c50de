"""How long each part of a launch may take, and which part it is in."""

from __future__ import annotations

import time

from attrs import define, field

from xcfg.plugin.executor import Limits

START, SCORE, STOP = "start", "score", "stop"
_PARTS = {"": START, "import": START, "open": START, "sample": SCORE, "score": SCORE, "close": STOP}


def part_of(phase: str) -> str:
    """The part that a phase of the ranks belongs to; no phase means that no rank has begun."""
    return _PARTS[phase]


def limit_of(phase: str, limits: Limits) -> float:
    """Seconds that the part of a phase may take."""
    return {START: limits.start, SCORE: limits.score, STOP: limits.stop}[part_of(phase)]


@define(kw_only=True)
class Clock:
    """Runs from the beginning of a part; each thing that is done while scoring starts it anew."""

    limits: Limits
    _part: str = START
    _done: int = 0
    _since: float = field(factory=lambda: time.monotonic())

    def over(self, phase: str, done: int) -> bool:
        """Whether the part that ``phase`` belongs to has taken too long; ``done`` counts the ranks' finished files."""
        if (part_of(phase), done) != (self._part, self._done):
            self._part, self._done, self._since = part_of(phase), done, time.monotonic()
        return time.monotonic() - self._since > limit_of(phase, self.limits)

"""Which cases have both their sides, told as side runs come to an end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from attrs import Factory, define

from xcfg.model.case import Case, SideConfig
from xcfg.runner.events import CaseExecuted, Event, SideReused, SideSealed


@define
class Tally:
    """Counts the cases of one execution. ``missing`` are the sides, by digest, that each unfinished case waits for."""

    total: int
    missing: dict[str, set[str]]
    users: dict[str, list[str]]

    @classmethod
    def of(cls, cases: Iterable[Case]) -> Tally:
        """Nothing has ended yet."""
        missing = {case.id: {case.rollout.digest(), case.training.digest()} for case in cases}
        users: dict[str, list[str]] = {}
        for case, sides in missing.items():
            for side in sides:
                users.setdefault(side, []).append(case)
        return cls(total=len(missing), missing=missing, users=users)

    def ended(self, config: SideConfig, case: str = "") -> tuple[CaseExecuted, ...]:
        """The cases that a side run completes: of all that use it, or of the one ``case`` it was run for."""
        side = config.digest()
        made = []
        for name in (case,) if case else self.users.get(side, ()):
            if name not in self.missing:
                continue
            self.missing[name].discard(side)
            if not self.missing[name]:
                del self.missing[name]
                made.append(CaseExecuted(case=name, number=self.total - len(self.missing), total=self.total))
        return tuple(made)


@define
class Teller:
    """Hands events on, one at a time whatever thread they come from, each followed by the cases it completes."""

    on_event: Callable[[Event], None]
    tally: Tally
    share: bool
    _lock: threading.Lock = Factory(threading.Lock)

    def emit(self, event: Event) -> None:
        """Tell an event. Without sharing, a side run is of one case, which only :meth:`ended` knows."""
        with self._lock:
            self.on_event(event)
            if self.share and isinstance(event, SideSealed | SideReused):
                self._complete(event.config, "")

    def ended(self, config: SideConfig, case: str = "") -> None:
        """A side run came to its end, be it sealed or failed; ``case`` is the one it was run for alone."""
        with self._lock:
            self._complete(config, case)

    def _complete(self, config: SideConfig, case: str) -> None:
        for executed in self.tally.ended(config, case):
            self.on_event(executed)

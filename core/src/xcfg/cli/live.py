"""The live view of an execution on a terminal: cases, engines, what each engine is doing, time left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import Factory, define
from rich.live import Live
from rich.table import Table
from rich.text import Text

from xcfg.cli.progress import Silent
from xcfg.runner.current import Watch
from xcfg.runner.events import (
    CaseExecuted,
    EnginePlanned,
    Event,
    GroupFinished,
    GroupStarted,
    Scheduled,
    SideFailed,
    SideReused,
    SideSealed,
)
from xcfg.runner.store import Store
from xcfg.runner.timings import EngineTime, Timings, makespan, measured

if TYPE_CHECKING:
    from rich.console import Console

    from xcfg.model.scorer import Role

REFRESH_HZ = 4


@define
class View(Silent):
    """What has happened so far. ``clock`` gives seconds; the time left rests on ``timings`` alone."""

    watch: Watch
    timings: Timings
    clock: Callable[[], float] = time.monotonic
    cases: tuple[int, int] = (0, 0)
    scheduled: bool = False
    total: int = 0
    done: int = 0
    failed: int = 0
    jobs: int = 1
    last: str = ""
    waiting: list[EnginePlanned] = Factory(list)
    running: dict[int, tuple[GroupStarted, float]] = Factory(dict)
    began: float = Factory(lambda self: self.clock(), takes_self=True)
    _lock: threading.Lock = Factory(threading.Lock)

    def __call__(self, event: Event, /) -> None:
        """Take an event in."""
        with self._lock:
            self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case Scheduled():
                self.waiting, self.jobs, self.cases = list(event.engines), event.jobs, (self.cases[0], event.cases)
                self.scheduled, self.total, self.done, self.running = True, len(event.engines), 0, {}
            case GroupStarted():
                self._start(event)
            case GroupFinished():
                self._finish(event)
            case CaseExecuted():
                self.cases = (event.number, event.total)
            case SideSealed() | SideReused():
                self.last = event.describe()
            case SideFailed():
                self.failed += 1
                self.last = event.describe()

    def _start(self, event: GroupStarted) -> None:
        planned = EnginePlanned(
            role=event.config.role, scorer=event.config.scorer, sides=event.sides, samples=event.samples
        )
        if planned in self.waiting:
            self.waiting.remove(planned)
        self.running[event.number] = (event, self.clock())

    def _finish(self, event: GroupFinished) -> None:
        self.running.pop(event.number, None)
        self.done += 1
        if not event.failed:
            config = event.config
            engine = EngineTime(role=config.role, scorer=config.scorer, start_s=event.start_s, score_s=event.score_s)
            self.timings = self.timings.plus(engine)

    def left_s(self) -> float | None:
        """Seconds until the last engine ends, by the engines that were measured; None where one never was."""
        now = self.clock()
        seconds: list[float | None] = []
        for started, since in self.running.values():
            whole = self._estimate(started.config.role, started.config.scorer, started.sides, started.samples)
            seconds.append(None if whole is None else max(0.0, whole - (now - since)))
        seconds += [self._estimate(item.role, item.scorer, item.sides, item.samples) for item in self.waiting]
        return makespan(seconds, self.jobs)

    def _estimate(self, role: Role, scorer: str, sides: int, samples: bool) -> float | None:
        return None if samples else self.timings.estimate(role, scorer, sides)

    def _left_words(self) -> str:
        if not self.scheduled:
            return "looking at what is on disk"
        left = self.left_s()
        if left is None:
            return "time left unknown"
        return f"about {clocked(left)} left" if left or not self.running else "longer than such engines took before"

    def __rich__(self) -> Table:
        """The view as it is now."""
        with self._lock:
            return self._drawn()

    def _drawn(self) -> Table:
        shown = Table.grid(padding=(0, 2))
        failed = f", {self.failed} side runs failed" if self.failed else ""
        head = [
            f"cases {self.cases[0]} of {self.cases[1]}",
            f"engines {self.done} of {self.total} done, {len(self.running)} at work{failed}",
            f"{clocked(self.clock() - self.began)} so far",
            self._left_words(),
        ]
        shown.add_row(Text(" | ".join(head), style="bold"))
        for item in self.watch.look() if self.running else ():
            doing = f"{item.phase or 'start'}, {item.ended} of {item.sides} side runs"
            shown.add_row(Text(f"  launch {item.launch}: {item.role.value} {item.scorer}: {doing}"))
        if self.last:
            shown.add_row(Text(f"  {self.last}", style="dim", overflow="ellipsis", no_wrap=True))
        return shown


def clocked(seconds: float) -> str:
    """Hours, minutes and seconds: ``1:02:03`` or ``2:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def live(screen: Console, folder: Path) -> Iterator[View]:
    """A view of what is executed into ``folder``; it is gone at the end, when the report takes its place."""
    store = Store(folder.absolute())
    view = View(watch=Watch(store), timings=measured(store))
    with Live(view, console=screen, refresh_per_second=REFRESH_HZ, transient=True):
        yield view

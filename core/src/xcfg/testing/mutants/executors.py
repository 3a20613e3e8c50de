"""Wrong executors."""

from __future__ import annotations

import threading
from collections.abc import Callable

from attrs import evolve

from xcfg.plugin.executor import Ended, Ending, Executor, Job
from xcfg.runner.environment import LAUNCH

_FOR_EVER = 1e6


class ExecutorMutant:
    """An executor that passes everything on to ``inner``; a subclass spoils one thing."""

    def __init__(self, inner: Executor) -> None:
        """Wrap ``inner``."""
        self.inner = inner

    def slots(self) -> int | None:
        """As the correct one."""
        return self.inner.slots()

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """As the correct one."""
        return self.inner.run(job, watch, stop)

    def close(self) -> None:
        """As the correct one."""
        self.inner.close()


class NoSlots(ExecutorMutant):
    """Takes no launch at all."""

    def slots(self) -> int | None:
        """None at once."""
        return 0


class VariablesIgnored(ExecutorMutant):
    """Starts the processes without the variables that the launch sets, but for the one that marks them."""

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Drop them."""
        return super().run(evolve(job, environment={LAUNCH: job.environment[LAUNCH]}), watch, stop)


class ResultsAtTheEnd(ExecutorMutant):
    """Brings the files when all is over."""

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Look once."""
        ended = super().run(job, lambda: None, stop)
        watch()
        return ended


class ExitCodeLost(ExecutorMutant):
    """Every launch went well."""

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Forget the code."""
        return evolve(super().run(job, watch, stop), code=0)


class FailureIsALoss(ExecutorMutant):
    """Takes a process that died for a machine that went away."""

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Blame the machine."""
        ended = super().run(job, watch, stop)
        return evolve(ended, ending=Ending.LOST) if ended.code else ended


class StopIgnored(ExecutorMutant):
    """Waits for the launch's own end."""

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Listen to an event that nobody sets."""
        return super().run(job, watch, threading.Event())


class ProcessesLeft(ExecutorMutant):
    """Says that it stopped and leaves the processes to end by themselves."""

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Run the launch in the background and look away when it is to stop."""
        found: list[Ended] = []
        work = threading.Thread(target=lambda: found.append(self.inner.run(job, watch, threading.Event())))
        work.start()
        while work.is_alive() and not stop.is_set():
            work.join(0.05)
        return found[0] if found else Ended(ending=Ending.STOPPED, code=0, seconds=0.0)


class LimitsIgnored(ExecutorMutant):
    """Gives every launch all the time there is."""

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Lengthen the limits."""
        limits = evolve(job.limits, start=_FOR_EVER, score=_FOR_EVER, stop=_FOR_EVER)
        return super().run(evolve(job, limits=limits), watch, stop)


class LossIsAFailure(ExecutorMutant):
    """Charges the side runs with a machine that went away."""

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Call it an exit."""
        ended = super().run(job, watch, stop)
        return evolve(ended, ending=Ending.EXITED, code=1) if ended.ending is Ending.LOST else ended


EXECUTOR_MUTANTS: tuple[type[ExecutorMutant], ...] = (
    NoSlots,
    VariablesIgnored,
    ResultsAtTheEnd,
    ExitCodeLost,
    FailureIsALoss,
    StopIgnored,
    ProcessesLeft,
    LimitsIgnored,
    LossIsAFailure,
)

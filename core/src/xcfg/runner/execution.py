"""The engine groups of one execution: reused, launched, retried, counted."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from attrs import define, evolve, field

from xcfg.model.attempt import SideFailure
from xcfg.model.case import SideConfig
from xcfg.model.sample import TokenBatch
from xcfg.model.status import Status
from xcfg.runner.acceptance import objection
from xcfg.runner.artifacts import newest, side_run
from xcfg.runner.context import Context
from xcfg.runner.events import AttemptRefused, GroupFinished, GroupStarted, SideReused, TokensFrozen
from xcfg.runner.group_run import GroupOutcome, run_group
from xcfg.runner.report import Engines, Refused, SideRun
from xcfg.runner.schedule import Group, remaining
from xcfg.runner.store import side_id

RETRIED = frozenset({Status.LAUNCH_ERROR, Status.ENVIRONMENT_ERROR, Status.TIMEOUT, Status.SCORER_ERROR})
"""Failures that another try may mend; the others would only come again."""


@define(kw_only=True)
class Execution:
    """Runs ``groups``; ``tokens`` None means that the first group samples them. ``sides`` by configuration digest."""

    context: Context
    groups: tuple[Group, ...]
    jobs: int
    tokens: TokenBatch | None
    sides: dict[str, SideRun] = field(factory=dict)
    refused: list[Refused] = field(factory=list)
    sampling: SideFailure | None = None
    constructed: int = 0
    engine_s: float = 0.0
    _reused: int = 0
    _number: int = 0
    _total: int = 0
    _lock: threading.Lock = field(factory=threading.Lock)

    def run(self) -> None:
        """Run what is not on disk. Raises KeyboardInterrupt when nothing of the engines is left."""
        waiting = self.groups
        if self.tokens is None:
            self._total = len(waiting)
            self._all(waiting[:1])
            waiting = waiting[1:]
        else:
            self._tell_tokens(self.tokens)
        if self.tokens is None:
            self._give_up(waiting)
            return
        left = remaining(waiting, self._on_disk)
        self._reused = len(waiting) - len(left)
        self._total = self._number + len(left)
        self._all(left)

    def find(self, configs: Sequence[SideConfig]) -> None:
        """Take stored attempts of side runs that were not to be run, such as a baseline that a slice left out."""
        if self.tokens is not None:
            for config in configs:
                if config.digest() not in self.sides:
                    self._on_disk(config)

    def engines(self) -> Engines:
        """Engine counts so far; more are constructed than distinct only where side runs failed."""
        return Engines(distinct=len(self.groups), constructed=self.constructed, reused_from_disk=self._reused)

    def _all(self, groups: Sequence[Group]) -> None:
        """Run the groups, ``jobs`` at a time; whatever interrupts this ends every engine first."""
        with ThreadPoolExecutor(max_workers=self.jobs, thread_name_prefix="engine") as pool:
            futures: list[Future[None]] = [pool.submit(self._complete, item) for item in groups]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            except BaseException:
                self.context.stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
            if any(future.done() and future.exception() is not None for future in futures):
                self.context.stop.set()
        for future in futures:
            future.result()

    def _complete(self, group: Group) -> None:
        """Run a group to its end, with further engines for what a failing side run kept from being scored."""
        if self.context.stop.is_set():
            return
        with self._lock:
            self._number += 1
            number = self._number
        self.context.emit(
            GroupStarted(
                number=number,
                total=self._total,
                config=group.engine,
                sides=len(group.sides),
                samples=group.sample is not None,
            )
        )
        seconds = 0.0
        tries: dict[str, int] = {}
        waiting: Group | None = group
        while waiting is not None and not self.context.stop.is_set():
            outcome = run_group(waiting, self.context, self.tokens)
            seconds += outcome.seconds
            waiting = self._take(waiting, outcome, tries)
        failed = sum(
            self.sides[side.digest()].failure is not None for side in group.sides if side.digest() in self.sides
        )
        self.context.emit(GroupFinished(number=number, total=self._total, seconds=seconds, failed=failed))

    def _take(self, group: Group, outcome: GroupOutcome, tries: dict[str, int]) -> Group | None:
        """Keep what a launch gave; returns what is still to do, if anything."""
        with self._lock:
            self.constructed += 1
            self.engine_s += outcome.seconds
            self.tokens = self.tokens or outcome.tokens
            self.sampling = outcome.sampling
            self.sides.update({run.config.digest(): run for run in outcome.runs})
        again = [run.config for run in outcome.runs if self._try_again(run.failure, run.config.digest(), tries)]
        if self.tokens is None:
            retry = self._try_again(outcome.sampling, "tokens", tries)
            return group if retry else None
        sides = [*again, *outcome.left]
        return evolve(group, engine=sides[0], sides=sides, sample=None) if sides else None

    def _try_again(self, failure: SideFailure | None, what: str, tries: dict[str, int]) -> bool:
        if failure is None or Status(failure.status) not in RETRIED:
            return False
        tries[what] = tries.get(what, 0) + 1
        return tries[what] <= self.context.options.retry

    def _on_disk(self, config: SideConfig) -> bool:
        """Whether a stored attempt serves; it then is the side's run. One that does not is named as refused."""
        assert self.tokens is not None
        context = self.context
        side = side_id(config, self.tokens.digest(), context.checkpoints[config.checkpoint.path])
        found = newest(context.store, side)
        if found is None or found.failure is not None or not context.options.resume:
            return False
        if reason := objection(config, found, context.registry, context.options.repeat):
            self.refused.append(Refused(side_id=side, attempt=found.number, reason=reason))
            context.emit(AttemptRefused(side_id=side, attempt=found.number, reason=reason))
            return False
        self.sides[config.digest()] = side_run(context.store, config, side, found)
        context.emit(SideReused(config=config, side_id=side, attempt=found.number))
        return True

    def _give_up(self, groups: Sequence[Group]) -> None:
        """Without tokens no side can be scored."""
        if self.sampling is None:  # stopped, not failed
            return
        failure = SideFailure(status=self.sampling.status, reason=f"no token batch: {self.sampling.reason}")
        for item in groups:
            self.sides.update({side.digest(): SideRun(config=side, failure=failure) for side in item.sides})

    def _tell_tokens(self, batch: TokenBatch) -> None:
        self.context.emit(
            TokensFrozen(digest=batch.digest(), sequences=len(batch.ids), active_tokens=batch.active_tokens)
        )

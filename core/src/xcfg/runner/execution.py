"""The engine groups of one execution: reused, launched, retried, counted."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from xcfg.model.attempt import SideFailure
from xcfg.model.case import SideConfig
from xcfg.model.sample import TokenBatch
from xcfg.model.status import Status
from xcfg.runner.artifacts import side_run
from xcfg.runner.context import Context
from xcfg.runner.events import AttemptRefused, GroupStarted, SideReused, TokensFrozen
from xcfg.runner.report import Engines, Refused, SideRun
from xcfg.runner.reuse import Shelf
from xcfg.runner.schedule import Group, remaining
from xcfg.runner.tally import Teller
from xcfg.runner.telling import finished, scheduled

if TYPE_CHECKING:
    from xcfg.runner.group_run import GroupOutcome

LOSSES = 3
"""Machines that the launches of one engine may lose before its side runs fail."""

RETRIED = frozenset({Status.LAUNCH_ERROR, Status.ENVIRONMENT_ERROR, Status.TIMEOUT, Status.SCORER_ERROR})
"""Failures that another try may mend; the others would only come again."""


@define(kw_only=True)
class Execution:
    """Runs ``groups``; ``tokens`` None means that the first group samples them. ``sides`` by configuration digest.

    ``alone``, by case id and then by digest, are the side runs of groups that stand for one case; ``before`` holds the
    keys of engines that a former stage built.
    """

    context: Context
    teller: Teller
    groups: tuple[Group, ...]
    jobs: int
    tokens: TokenBatch | None
    sides: dict[str, SideRun] = field(factory=dict)
    alone: dict[str, dict[str, SideRun]] = field(factory=dict)
    before: frozenset[str] = frozenset()
    refused: list[Refused] = field(factory=list)
    sampling: SideFailure | None = None
    constructed: int = 0
    engine_s: float = 0.0
    _shelf: Shelf | None = None
    _reused: int = 0
    _number: int = 0
    _total: int = 0
    _lock: threading.Lock = field(factory=threading.Lock)

    def run(self) -> None:
        """Run what is not on disk. Raises KeyboardInterrupt when nothing of the engines is left."""
        waiting = self.groups
        if self.tokens is None:
            self._total = len(waiting)
            self._tell_schedule(waiting)
            self._all(waiting[:1])
            waiting = waiting[1:]
            left = waiting
        else:
            self._tell_tokens(self.tokens)
            left = remaining(waiting, self._reuse)
            self._reused = len(waiting) - len(left)
            self._tell_schedule(left)
        if self.tokens is None:
            self._give_up(waiting)
            return
        self._total = self._number + len(left)
        self._all(left)

    def find(self, configs: Sequence[SideConfig]) -> None:
        """Take stored attempts of side runs that were not to be run, such as a baseline that a slice left out.

        They are taken whether or not what was to be run may be reused.
        """
        if self.tokens is not None:
            for config in configs:
                if config.digest() not in self.sides:
                    self._on_disk(config)

    def engines(self) -> Engines:
        """Engine counts so far; more are constructed than distinct only where side runs failed."""
        distinct = len(self.before.union(item.key for item in self.groups))
        return Engines(distinct=distinct, constructed=self.constructed, reused_from_disk=self._reused)

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
        from xcfg.runner.group_run import run_group  # where everything is on disk, nothing of it is needed

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
        lost = 0
        while waiting is not None and not self.context.stop.is_set():
            outcome = run_group(waiting, self.context, self.tokens, may_lose=lost < LOSSES)
            lost += outcome.lost
            seconds += outcome.seconds
            waiting = self._take(waiting, outcome, tries)
        self._finished(group, number, seconds)

    def _take(self, group: Group, outcome: GroupOutcome, tries: dict[str, int]) -> Group | None:
        """Keep what a launch gave; returns what is still to do, if anything."""
        with self._lock:
            self.constructed += 1
            self.engine_s += outcome.seconds
            self.tokens = self.tokens or outcome.tokens
            self.sampling = outcome.sampling
            runs = {run.config.digest(): run for run in outcome.runs}
            self.sides.update(runs)
            if group.case:
                self.alone.setdefault(group.case, {}).update(runs)
        again = [run.config for run in outcome.runs if self._try_again(run.failure, run.config.digest(), tries)]
        if self.tokens is None:
            retry = self._try_again(outcome.sampling, "tokens", tries)
            return group if retry or outcome.lost else None
        sides = [*again, *outcome.left]
        return evolve(group, engine=sides[0], sides=sides, sample=None) if sides else None

    def _try_again(self, failure: SideFailure | None, what: str, tries: dict[str, int]) -> bool:
        if failure is None or Status(failure.status) not in RETRIED:
            return False
        tries[what] = tries.get(what, 0) + 1
        return tries[what] <= self.context.options.retry

    def _finished(self, group: Group, number: int, seconds: float) -> None:
        held = self.alone.get(group.case, {}) if group.case else self.sides
        runs = [held[side.digest()] for side in group.sides if side.digest() in held]
        for run in runs:
            self.teller.ended(run.config, group.case)
        self.context.emit(finished(group, runs, number=number, total=self._total, seconds=seconds))

    def _reuse(self, config: SideConfig) -> bool:
        options = self.context.options
        return options.resume and options.share and self._on_disk(config)

    def _on_disk(self, config: SideConfig) -> bool:
        """Whether a stored attempt serves; it then is the side's run. One that does not is named as refused."""
        assert self.tokens is not None
        context = self.context
        if self._shelf is None:
            self._shelf = Shelf(
                store=context.store,
                registry=context.registry,
                token_digest=self.tokens.digest(),
                checkpoints=context.checkpoints,
                repeat=context.options.repeat,
            )
        found = self._shelf.find(config)
        if found.newest is None:
            return False
        number = found.newest.number
        if found.objection:
            self.refused.append(Refused(side_id=found.side_id, attempt=number, reason=found.objection))
            context.emit(AttemptRefused(side_id=found.side_id, attempt=number, reason=found.objection))
        if not found.serves:
            return False
        self.sides[config.digest()] = side_run(context.store, config, found.side_id, found.newest)
        context.emit(SideReused(config=config, side_id=found.side_id, attempt=number))
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

    def _tell_schedule(self, groups: Sequence[Group]) -> None:
        cases = self.teller.tally.total
        self.context.emit(scheduled(groups, reused=self._reused, cases=cases, jobs=self.jobs))

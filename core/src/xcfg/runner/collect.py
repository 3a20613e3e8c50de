"""Takes over what a launch gives while it runs: freezes its tokens, seals each side run, records failures."""

from __future__ import annotations

import shutil
from pathlib import Path

from attrs import define, field

from xcfg.errors import EnvironmentFault
from xcfg.model.attempt import SideFailure
from xcfg.model.case import SideConfig
from xcfg.model.codec import unstructure
from xcfg.model.sample import TokenBatch
from xcfg.model.status import Status
from xcfg.runner.attempt_files import Surroundings, subject_of, write_attempt, write_failure
from xcfg.runner.context import Context
from xcfg.runner.events import SideFailed, SideSealed, TokensFrozen
from xcfg.runner.fingerprint import fingerprint
from xcfg.runner.frozen import freeze_tokens
from xcfg.runner.launch import LaunchSpec
from xcfg.runner.merge import Expected, Merged, SideInvalid, merge
from xcfg.runner.rank_record import failure_name, sampled_name
from xcfg.runner.report import SideRun
from xcfg.runner.schedule import Group
from xcfg.runner.specify import is_fake
from xcfg.runner.staging import LogParts, complete, first_failure, present, read_sampled
from xcfg.runner.store import side_id


@define(kw_only=True)
class Collector:
    """The state of one launch as the parent sees it. ``runs`` holds finished side runs in the order of the group.

    ``explained`` is True once a side run failed in a way after which the child gives up.
    """

    context: Context
    group: Group
    spec: LaunchSpec
    launch: Path
    logs: LogParts
    tokens: TokenBatch | None
    runs: list[SideRun] = field(factory=list)
    sampling: SideFailure | None = None
    explained: bool = False

    @property
    def left(self) -> tuple[SideConfig, ...]:
        """Side runs that are neither sealed nor failed."""
        return self.group.sides[len(self.runs) :]

    @property
    def step(self) -> Path:
        """Staging folder of the first side run that is left."""
        return Path(self.spec.steps[len(self.runs)].folder)

    @property
    def clean(self) -> bool:
        """Whether the child had no reason to end other than being done."""
        broken = (run.failure.status for run in self.runs if run.failure is not None)
        return not self.left and self.sampling is None and all(status == Status.UNSUPPORTED for status in broken)

    def collect(self) -> bool:
        """Take over whatever is complete; True where that was the token batch or a side run."""
        progress = False
        if self.tokens is None and self.sampling is None:
            progress = self._take_tokens()
        while self.tokens is not None and self.left and self._take_side():
            progress = True
        return progress

    def fail_next(self, failure: SideFailure) -> None:
        """Record that the first side run that is left gave nothing."""
        config = self.left[0]
        side = self._side_id(config)
        self.runs.append(self._failed(config, side, failure, self.step))

    def fail_all(self, failure: SideFailure) -> None:
        """Record that the engine never came to score: the sampling and every side run have failed."""
        if self.tokens is None:
            self.sampling = failure
        while self.left:
            self.fail_next(failure)

    def _take_tokens(self) -> bool:
        task = self.spec.sample
        if task is None or present(Path(task.folder), self.spec.world_size, sampled_name) < self.spec.world_size:
            return False
        try:
            batch = read_sampled(Path(task.folder), self.spec.world_size)
            source = {"sampler": unstructure(self.group.engine), "launch": self.launch.name}
            freeze_tokens(self.context.store.tokens, batch, source)
        except SideInvalid as error:
            self.sampling = SideFailure(status=error.status, reason=error.reason)
            return False
        except EnvironmentFault as error:
            self.sampling = SideFailure(status=Status.ENVIRONMENT_ERROR, reason=str(error))
            return False
        self.tokens = batch
        self.context.emit(
            TokensFrozen(digest=batch.digest(), sequences=len(batch.ids), active_tokens=batch.active_tokens)
        )
        return True

    def _take_side(self) -> bool:
        ranks, folder, config = self.spec.world_size, self.step, self.left[0]
        if complete(folder, ranks):
            self.runs.append(self._sealed(config, folder))
            return True
        if present(folder, ranks, failure_name) == ranks:
            failure = first_failure(folder, ranks)
            assert failure is not None
            self.explained = failure.status != Status.UNSUPPORTED
            self.fail_next(failure.side_failure())
            return True
        return False

    def _sealed(self, config: SideConfig, folder: Path) -> SideRun:
        side = self._side_id(config)
        try:
            merged = merge(folder, self._expected(config))
        except SideInvalid as error:
            return self._failed(config, side, SideFailure(status=error.status, reason=error.reason), folder)
        try:
            run = self._write(config, side, merged)
        except EnvironmentFault as error:
            failure = SideFailure(status=Status.ENVIRONMENT_ERROR, reason=str(error))
            return self._failed(config, side, failure, folder)
        shutil.rmtree(folder)
        self.context.emit(SideSealed(config=config, side_id=side, attempt=run.attempt))
        return run

    def _write(self, config: SideConfig, side: str, merged: Merged) -> SideRun:
        number, path = self.context.store.new_attempt(side)
        around = Surroundings(
            fingerprint=fingerprint(config, self.context.registry), facts=merged.facts, launch=self.launch.name
        )
        try:
            write_attempt(path, subject_of(side, number), config, merged, around, self.logs.cut())
        except BaseException:
            shutil.rmtree(path)
            raise
        return SideRun(
            config=config,
            side_id=side,
            attempt=number,
            path=path,
            result=merged.result,
            measured=merged.measured,
        )

    def _failed(self, config: SideConfig, side: str, failure: SideFailure, evidence: Path) -> SideRun:
        """Keep the failure, the logs so far and what the ranks had written; without room, only in memory."""
        run = SideRun(config=config, side_id=side, failure=failure)
        if side:
            run = self._write_failure(run, evidence)
        self.context.emit(SideFailed(config=config, side_id=side, status=failure.status, reason=failure.reason))
        if self.context.options.fail_fast:
            self.context.stop.set()
        return run

    def _write_failure(self, run: SideRun, evidence: Path) -> SideRun:
        assert run.failure is not None
        path = None
        try:
            number, path = self.context.store.new_attempt(run.side_id)
            parts = self.logs.cut()
            names = tuple(self.context.store.relative(path / "logs" / name) for name in parts)
            failure = SideFailure(status=run.failure.status, reason=run.failure.reason, logs=names)
            write_failure(path, failure, self.launch.name, parts)
            if any(evidence.iterdir()):
                evidence.rename(path / "ranks")
        except (EnvironmentFault, OSError):  # the failure itself is reported all the same
            if path is not None:
                shutil.rmtree(path, ignore_errors=True)
            return run
        return SideRun(config=run.config, side_id=run.side_id, attempt=number, path=path, failure=failure)

    def _side_id(self, config: SideConfig) -> str:
        if self.tokens is None:
            return ""
        return side_id(config, self.tokens.digest(), self.context.checkpoints[config.checkpoint.path])

    def _expected(self, config: SideConfig) -> Expected:
        assert self.tokens is not None
        return Expected(
            config=config,
            ranks=self.spec.world_size,
            token_digest=self.tokens.digest(),
            checkpoint=self.context.checkpoints[config.checkpoint.path],
            fake=is_fake(config, self.context.registry),
        )

"""The conformance checks of an executor: a small grid of fakes is launched through it, and ended in every way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from xcfg.cube.sameness import differences
from xcfg.errors import InvalidInput
from xcfg.model.executor import ExecutorDescriptor
from xcfg.model.scorer import Role
from xcfg.plugin.executor import Ended, Ending, Executor, Job
from xcfg.plugin.target import load_target
from xcfg.runner.events import SideSealed
from xcfg.runner.report import RunReport
from xcfg.testing.elsewhere import ExecutorWorld, executor_world
from xcfg.testing.gated import GO

_AXES: Mapping[str, Any] = {"batch.micro_size": [None, 2], "training.compute_dtype": ["bfloat16", "float32"]}
_TWO_SIDES: Mapping[str, Any] = {"batch.micro_size": [None, 2]}
_KILLED = 128 + 9
_TICK_S = 0.05


class Observed:
    """An executor that passes everything on, keeps how each launch ended, and can be stopped from outside."""

    def __init__(self, inner: Executor) -> None:
        """Wrap ``inner``."""
        self.inner = inner
        self.stop = threading.Event()
        self.endings: list[Ended] = []

    def slots(self) -> int | None:
        """As ``inner``."""
        return self.inner.slots()

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """As ``inner``, under our own event."""
        ended = self.inner.run(job, watch, self.stop)
        self.endings.append(ended)
        return ended

    def ended(self, ending: Ending) -> list[Ended]:
        """The launches that ended so."""
        return [item for item in self.endings if item.ending is ending]

    def close(self) -> None:
        """As ``inner``."""
        self.inner.close()


class ExecutorTests:
    """Subclass, set the attributes and methods, and pytest checks the executor.

    ``descriptor``: its descriptor. ``options``: what it is made with. ``patience``: seconds that anything here may
    take before it counts as never happening. Override ``lose_machine`` where launches run on a machine that can go
    away, and ``world`` where the executor's machines have to know its folders from their start.
    """

    descriptor: ClassVar[ExecutorDescriptor]
    options: ClassVar[Mapping[str, str]] = {}
    patience: ClassVar[float] = 120.0

    def make_executor(self) -> Executor:
        """A new executor."""
        made: Executor = load_target(self.descriptor.target, self.descriptor.id)(dict(self.options))
        return made

    def lose_machine(self, executor: Executor, world: ExecutorWorld) -> None:
        """Take away the machine of the launch that runs, so that nothing there can write down how it ended."""
        pytest.skip("launches run on this machine, which cannot go away")

    @pytest.fixture
    def world(self, tmp_path: Path) -> Iterator[ExecutorWorld]:
        """A checkpoint, tokens, and a gate that the scorers wait at from their second side run on."""
        (tmp_path / "world").mkdir()
        with executor_world(tmp_path / "world") as made:
            yield made

    @pytest.fixture
    def executor(self) -> Iterator[Observed]:
        """The executor under test, closed after the test."""
        made = Observed(self.make_executor())
        yield made
        made.close()

    def test_is_an_executor(self) -> None:
        """All three methods are there, and it says how many launches it takes."""
        made = self.make_executor()
        assert isinstance(made, Executor)
        slots = made.slots()
        assert slots is None or slots >= 1
        made.close()

    def test_an_unknown_option_is_refused(self) -> None:
        """By its name: an option that is passed over would be believed to hold."""
        with pytest.raises(InvalidInput, match="no_such_option"):
            load_target(self.descriptor.target, self.descriptor.id)({**self.options, "no_such_option": "1"})

    def test_a_grid_is_the_same_bit_for_bit(self, world: ExecutorWorld, executor: Observed, tmp_path: Path) -> None:
        """As on this machine, with the variables a launch sets in force there, every launch exited with 0."""
        baseline = {"execution.threads": 2}
        world.run(tmp_path / "here", axes=_AXES, baseline=baseline, jobs=2)
        report = world.run(tmp_path / "out", executor, axes=_AXES, baseline=baseline, jobs=2)
        assert [run.failure for run in report.sides.values() if run.failure] == []
        assert differences(tmp_path / "out/cube.zarr", tmp_path / "here/cube.zarr") == {}
        assert {(ended.ending, ended.code) for ended in executor.endings} == {(Ending.EXITED, 0)}
        assert world.left() == []

    def test_results_come_while_the_launch_runs(self, world: ExecutorWorld, executor: Observed, tmp_path: Path) -> None:
        """A side run is taken over while the same launch still waits, so that a later failure cannot take it along."""
        world.shut()
        waiting: list[bool] = []

        def note(event: Any) -> None:
            if isinstance(event, SideSealed) and event.config.role is Role.TRAINING:  # the engine with two side runs
                waiting.append(not (world.home / GO).exists())

        with self._meanwhile(world, lambda: waiting):
            report = world.run(tmp_path / "out", executor, axes=_TWO_SIDES, on_event=note, jobs=1)
        assert waiting, f"no side run came at all: {_told(executor, report)}"
        assert waiting[0], "nothing came before the launch had ended"

    def test_the_exit_code_is_told(
        self, world: ExecutorWorld, executor: Observed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A process killed by signal 9 has exited with 137; that is no lost machine and no success."""
        monkeypatch.setattr(world.registry, "targets", {"fake": "xcfg.testing.failing:Killed"})
        report = world.run(tmp_path / "out", executor, jobs=1)
        assert executor.endings, f"no launch came to its end: {_told(executor, report)}"
        assert {(ended.ending, ended.code) for ended in executor.endings} == {(Ending.EXITED, _KILLED)}
        assert all(run.failure is not None for run in report.sides.values())

    def test_a_stop_ends_everything(self, world: ExecutorWorld, executor: Observed, tmp_path: Path) -> None:
        """At once, also while the engine scores, and no process is left when ``run`` returns."""
        world.shut()
        with self._meanwhile(world, world.marks, executor.stop.set, lambda: executor.ended(Ending.STOPPED)):
            report = world.run(tmp_path / "out", _Emptied(executor, world), axes=_TWO_SIDES, jobs=1)
        assert world.marks(), f"the engine never began to score: {_told(executor, report)}"
        assert executor.ended(Ending.STOPPED), _told(executor, report)

    def test_limits_are_kept(self, world: ExecutorWorld, executor: Observed, tmp_path: Path) -> None:
        """A launch that scores for longer than it may is ended and said to have run out of time."""
        world.shut()
        limit = 2.0
        with self._meanwhile(world, world.marks, then=lambda: executor.ended(Ending.TIMEOUT)):
            report = world.run(tmp_path / "out", _Emptied(executor, world), axes=_TWO_SIDES, jobs=1, timeout=limit)
        assert world.marks(), f"the engine never began to score: {_told(executor, report)}"
        found = executor.ended(Ending.TIMEOUT)
        assert found, _told(executor, report)
        assert found[0].seconds > limit

    def test_a_lost_machine_is_told_apart(self, world: ExecutorWorld, executor: Observed, tmp_path: Path) -> None:
        """Nobody's fault among the side runs: what was sealed stands, what was left is launched again."""
        world.shut()
        with self._meanwhile(world, world.marks, lambda: self.lose_machine(executor.inner, world)):
            report = world.run(tmp_path / "out", executor, axes=_TWO_SIDES, jobs=1)
        assert len(executor.ended(Ending.LOST)) == 1, _told(executor, report)
        assert [run.failure for run in report.sides.values() if run.failure] == []
        assert len(list((tmp_path / "out").glob("sides/*/attempt-*"))) == len(report.sides)

    def _meanwhile(
        self,
        world: ExecutorWorld,
        when: Callable[[], object],
        act: Callable[[], object] = lambda: None,
        then: Callable[[], object] = lambda: True,
    ) -> _Meanwhile:
        return _Meanwhile(when=when, act=act, then=then, after=world.go, patience=self.patience)


def _told(executor: Observed, report: RunReport) -> str:
    """How the launches ended, and what is said of side runs that have no result."""
    failed = [str(run.failure) for run in report.sides.values() if run.failure]
    return f"the launches ended with {executor.endings}, and the side runs without a result say {failed}"


class _Emptied:
    """Looks after each launch whether anything of it is left; opens the gate after one that did not exit by itself."""

    def __init__(self, inner: Observed, world: ExecutorWorld) -> None:
        self.inner, self.world = inner, world

    def slots(self) -> int | None:
        return self.inner.slots()

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        ended = self.inner.run(job, watch, stop)
        left = self.world.left()
        if ended.ending is not Ending.EXITED:
            self.world.go()
        assert left == [], "something of the launch is left"
        return ended

    def close(self) -> None:
        self.inner.close()


class _Meanwhile:
    """A thread that waits, acts, waits again, and lets every scorer go; what it raises is raised at the end."""

    def __init__(
        self,
        *,
        when: Callable[[], object],
        act: Callable[[], object],
        then: Callable[[], object],
        after: Callable[[], object],
        patience: float,
    ) -> None:
        self._steps = (when, act, then, after)
        self._patience = patience
        self._error: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        when, act, then, after = self._steps
        try:
            self._wait(when)
            act()
            self._wait(then)
        except BaseException as error:
            self._error = error
        finally:
            after()

    def _wait(self, happened: Callable[[], object]) -> None:
        deadline = time.monotonic() + self._patience
        while not (happened() or self._over.is_set() or time.monotonic() > deadline):
            time.sleep(_TICK_S)

"""The seam that executors of other distributions use: files to another place, a command there, files back."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from attrs import evolve

from xcfg.errors import EnvironmentFault, InvalidInput
from xcfg.model.status import Status
from xcfg.plugin.executor import Ended, Ending, Executor
from xcfg.runner.execution import LOSSES
from xcfg.runner.local import LocalExecutor


class Elsewhere:
    """Runs a launch in a folder that knows nothing of the output folder, as another machine would.

    The first ``lost`` launches go away once they have left ``after`` records; what had arrived by then stays.
    """

    def __init__(self, lost=0, after=0):
        self.launches = []
        self.lost = lost
        self.after = after

    def slots(self):
        return 1

    def run(self, job, watch, stop):
        self.launches.append(job.folder)
        with tempfile.TemporaryDirectory() as scratch:
            for name in job.inputs:
                source, target = Path(job.root) / name, Path(scratch) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
            subprocess.run(job.argv(), cwd=scratch, check=True, stdin=subprocess.DEVNULL)
            away = len(self.launches) <= self.lost
            self._carry(Path(scratch), job, records=self.after if away else None)
        watch()
        return Ended(ending=Ending.LOST, code=0, seconds=1.0) if away else job.ended()

    def _carry(self, scratch, job, records):
        files = [path for path in (scratch / job.folder).rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: path.stat().st_mtime_ns):
            if path.name.startswith(("rank-", "closed-")) and path.suffix == ".json" and records is not None:
                if records == 0:
                    return
                records -= 1
            target = Path(job.root) / path.relative_to(scratch)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)

    def close(self):
        pass


class Nowhere(Elsewhere):
    def run(self, job, watch, stop):
        raise EnvironmentFault("the cluster is not there", where="--executor")


@pytest.fixture
def grid(world):
    """Two side runs on one engine, one on another."""
    sides = [world.side("rollout", batch__size=size) for size in (1, 2)]
    return world.plan(*[(side, world.side("training")) for side in sides])


def test_they_are_executors():
    assert isinstance(LocalExecutor({}), Executor) and isinstance(Elsewhere(), Executor)


def test_another_place_gives_the_same_results(world, grid):
    here = world.run(grid)
    there = evolve(world, folder="there")
    elsewhere = Elsewhere()
    found = there.run(grid, executor=elsewhere)
    assert len(elsewhere.launches) == 2
    assert {name: run.result for name, run in found.sides.items()} == {
        name: run.result for name, run in here.sides.items()
    }
    assert all(run.findings == () for run in found.sides.values())


def test_sampling_elsewhere_freezes_the_same_tokens(world):
    side = world.side("rollout")
    plan = world.plan((side, world.side("training")), sample=True)
    here = world.run(plan).tokens
    there = evolve(world, folder="there").run(plan, executor=Elsewhere()).tokens
    assert (there.digest(), there.sampled_logprobs) == (here.digest(), here.sampled_logprobs)


@pytest.mark.parametrize("sample", [False, True])
def test_what_a_lost_machine_had_sealed_is_not_scored_again(world, sample):
    sides = [world.side("rollout", batch__size=size) for size in (1, 2)]
    plan = world.plan(*[(side, sides[0]) for side in sides], sample=sample)
    elsewhere = Elsewhere(lost=1, after=1)
    report = world.run(plan, executor=elsewhere)
    assert len(elsewhere.launches) == 2
    assert {run.failure for run in report.sides.values()} == {None}
    assert {run.attempt for run in report.sides.values()} == {1}
    steps = [sorted((world.out / name / "staging").glob("step-*")) for name in elsewhere.launches]
    assert [len(found) for found in steps] == [1, 0]  # sealed ones are gone; the second launch had one side run only


def test_too_many_lost_machines_are_an_environment_error(world):
    side = world.side("rollout")
    elsewhere = Elsewhere(lost=100)
    failure = world.run(world.plan((side, side)), executor=elsewhere).sides[side.digest()].failure
    assert failure.status == Status.ENVIRONMENT_ERROR and "lost" in failure.reason
    assert len(elsewhere.launches) == LOSSES + 1


def test_a_place_that_is_not_there_fails_the_side_runs(world, grid):
    report = world.run(grid, executor=Nowhere())
    assert {run.failure.status for run in report.sides.values()} == {Status.ENVIRONMENT_ERROR}


def test_a_tied_command_ends_with_its_input(world, tmp_path):
    side = world.side("rollout", "DaemonsThenHang")
    seen = {}

    class Tied(Elsewhere):
        def run(self, job, watch, stop):
            process = subprocess.Popen(job.argv(tied=True), cwd=job.root, stdin=subprocess.PIPE)
            while not (job.place / "staging" / "phase-00000.txt").exists():
                assert process.poll() is None
            process.stdin.close()
            seen["code"] = process.wait(timeout=60)
            return job.ended()

    world.run(world.plan((side, side)), executor=Tied())
    assert seen["code"] == 0


def test_an_unknown_option_is_refused():
    with pytest.raises(InvalidInput, match="no option speed"):
        LocalExecutor({"speed": "high"})

import json

import psutil
import pytest

from xcfg.model.status import Status
from xcfg.runner.artifacts import load_run

BROKEN = {
    "fake_open_crash": (Status.LAUNCH_ERROR, "the fake engine cannot be built"),
    "fake_score_crash": (Status.SCORER_ERROR, "the fake engine cannot score"),
    "fake_killed": (Status.SCORER_ERROR, "signal 9"),
    "NoMemory": (Status.ENVIRONMENT_ERROR, "engine core failed"),
    "Absent": (Status.ENVIRONMENT_ERROR, "pip install no-such-engine"),
    "WrongWeights": (Status.INVALID_IDENTITY, "0" * 64),
    "fake_dropped_rank": (Status.INVALID_ARTIFACT, "2 ranks"),
}
UNSOUND = {"fake_fallback": "mismatch", "fake_unobserved": "unobservable"}
ODD_BUT_GOOD = ("AbortsAtExit", "Daemons", "fake")


@pytest.fixture(scope="module")
def grid(tmp_path_factory, make_world):
    """One run over every kind of engine: a failing one must never stop the others."""
    with pytest.MonkeyPatch.context() as patch:
        world = make_world(tmp_path_factory.mktemp("failures"), patch)
        names = (*BROKEN, *UNSOUND, *ODD_BUT_GOOD)
        sides = {name: world.side("rollout", name, rollout__dtype="bfloat16") for name in names}
        plan = world.plan(*[(side, side) for side in sides.values()])
        report = world.run(plan, jobs=2)
        yield world, plan, {name: report.sides[side.digest()] for name, side in sides.items()}


@pytest.mark.parametrize("name", BROKEN)
def test_each_failure_has_its_status_reason_and_logs(grid, name):
    world, plan, runs = grid
    status, reason = BROKEN[name]
    failure = runs[name].failure
    assert failure.status == status
    assert reason in failure.reason
    stored = load_run(world.out, plan).sides[runs[name].config.digest()]
    assert (stored.failure, stored.attempt) == (failure, 1)
    if name in ("fake_open_crash", "fake_score_crash"):
        assert "Traceback" in "".join((world.out / log).read_text() for log in failure.logs)


@pytest.mark.parametrize("name", UNSOUND)
def test_what_was_not_seen_in_force_is_unsound(grid, name):
    provenance = grid[2][name].result.provenance
    assert provenance.unsound == ("rollout.dtype",)
    assert provenance.knobs["rollout.dtype"].state == UNSOUND[name]


def test_a_crash_after_the_seal_is_a_finding_and_no_failure(grid):
    world, plan, runs = grid
    run = runs["AbortsAtExit"]
    assert run.failure is None
    assert [(item.subclass, item.evidence["code"]) for item in run.findings] == [("process-exit", 128 + 6)]
    assert load_run(world.out, plan).sides[run.config.digest()].findings == run.findings
    assert runs["fake"].findings == ()


def test_daemons_left_behind_by_a_good_engine_are_ended(grid):
    world, _, runs = grid
    assert runs["Daemons"].failure is None
    pids = [int(path.name) for path in (world.home / "pids").iterdir()]
    assert len(pids) == 2
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_a_hanging_scorer_runs_out_of_time_with_its_whole_tree(world):
    side = world.side("rollout", "DaemonsThenHang")
    report = world.run(world.plan((side, side)), timeout=4.0)
    assert report.sides[side.digest()].failure.status == Status.TIMEOUT
    pids = [int(path.name) for path in (world.home / "pids").iterdir()]
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_a_retry_gives_a_second_chance(world):
    side = world.side("rollout", "Flaky")
    report = world.run(world.plan((side, side)), retry=1)
    flaky = report.sides[side.digest()]
    assert (flaky.failure, flaky.attempt) == (None, 2)
    assert report.engines.constructed == 2
    first = json.loads((flaky.path.parent / "attempt-0001" / "failure.json").read_text())
    assert first["failure"]["status"] == "launch_error"


def test_a_failed_side_is_tried_again_by_the_next_run_alone(world):
    plan = world.plan((world.side("rollout", "Flaky"), world.side("rollout")))
    world.run(plan)
    report = world.run(plan)
    assert report.engines.constructed == 1
    assert all(run.failure is None for run in report.sides.values())


def test_a_failing_request_costs_only_its_own_side_run(world):
    sides = [world.side("rollout", "CrashSecond", batch__size=size) for size in (2, 4, 8)]
    report = world.run(world.plan(*[(side, side) for side in sides]))
    statuses = [getattr(report.sides[side.digest()].failure, "status", "sealed") for side in sides]
    assert statuses == ["sealed", "scorer_error", "sealed"]
    assert report.sides[sides[0].digest()].findings == ()
    # the engine's state after the crash is unknown: the third side run got another one
    assert (report.engines.distinct, report.engines.constructed) == (1, 2)


def test_an_unsupported_request_value_does_not_cost_the_engine(world, registry):
    sides = [world.side("rollout", batch__size=size) for size in (2, 4, 8)]
    report = world.run(world.plan(*[(side, side) for side in sides]), registry(choosy=True))
    failure = report.sides[sides[1].digest()].failure
    assert (failure.status, report.engines.constructed) == (Status.UNSUPPORTED, 1)
    assert "four is too many" in failure.reason
    assert report.sides[sides[2].digest()].failure is None


def test_fail_fast_starts_no_further_engine(world):
    plan = world.plan((world.side("rollout", "fake_open_crash"), world.side("training")))
    report = world.run(plan, fail_fast=True)
    assert report.engines.constructed == 1
    assert list(report.sides) == [plan.cases[0].rollout.digest()]


def test_without_tokens_every_side_carries_the_reason(world):
    plan = world.plan((world.side("rollout", "NoSampler"), world.side("training")), sample=True)
    report = world.run(plan)
    assert report.tokens is None
    assert {run.failure.status for run in report.sides.values()} == {Status.UNSUPPORTED}
    assert len(report.sides) == 2
    assert {run.failure.status for run in load_run(world.out, plan).sides.values()} == {Status.UNSUPPORTED}

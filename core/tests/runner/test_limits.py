"""Each part of a launch has its own limit: to the open engine, for each thing it scores, and to close."""

import pytest

from xcfg.model.status import Status
from xcfg.plugin.executor import Limits
from xcfg.runner import clock
from xcfg.runner.clock import Clock, limit_of

LIMITS = Limits(start=30.0, score=10.0, stop=5.0)


@pytest.fixture
def at(monkeypatch):
    """Sets the clock."""

    def go(seconds):
        monkeypatch.setattr(clock.time, "monotonic", lambda: seconds)

    go(0.0)
    return go


@pytest.mark.parametrize(
    ("phase", "limit"),
    [("", 30.0), ("import", 30.0), ("open", 30.0), ("sample", 10.0), ("score", 10.0), ("close", 5.0)],
)
def test_each_phase_has_the_limit_of_its_part(phase, limit):
    assert limit_of(phase, LIMITS) == limit


def test_import_and_open_share_one_limit(at):
    watch = Clock(limits=LIMITS)
    for seconds, phase in ((20.0, "import"), (29.0, "open")):
        at(seconds)
        assert not watch.over(phase, 0)
    at(31.0)
    assert watch.over("open", 0)


def test_each_thing_that_is_scored_starts_the_limit_anew(at):
    watch = Clock(limits=LIMITS)
    at(29.0)
    assert not watch.over("score", 0)
    at(38.0)
    assert not watch.over("score", 1)
    at(47.0)
    assert not watch.over("score", 1)
    at(49.0)
    assert watch.over("score", 1)


def test_closing_has_its_own(at):
    watch = Clock(limits=LIMITS)
    assert not watch.over("close", 2)
    at(6.0)
    assert watch.over("close", 2)


def test_an_engine_that_never_opens_is_a_timeout_of_the_start(world):
    side = world.side("rollout", "HangsAtOpen")
    failure = world.run(world.plan((side, side)), start_timeout=3.0).sides[side.digest()].failure
    assert failure.status == Status.TIMEOUT
    assert "not done after 3 s (open)" in failure.reason


def test_an_engine_that_never_closes_has_given_its_results(world):
    side = world.side("rollout", "HangsAtClose")
    run = world.run(world.plan((side, side)), stop_timeout=1.0).sides[side.digest()]
    assert run.failure is None
    assert [(item.subclass, item.evidence["ending"]) for item in run.findings] == [("process-exit", "timeout")]

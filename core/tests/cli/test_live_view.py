"""The live view, drawn without a terminal and on one."""

import os
import pty
import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console

from xcfg.cli.live import View, clocked
from xcfg.model.case import SideConfig
from xcfg.model.experiment import Checkpoint
from xcfg.model.scorer import Role
from xcfg.runner.current import Current
from xcfg.runner.events import CaseExecuted, EnginePlanned, GroupFinished, GroupStarted, Scheduled, SideFailed
from xcfg.runner.timings import EngineTime, Timings

ROLLOUT, TRAINING = (
    SideConfig(role=role, scorer="fake", checkpoint=Checkpoint(path="model")) for role in (Role.ROLLOUT, Role.TRAINING)
)


class Launches:
    """In the place of a watch on a folder."""

    def look(self):
        return (Current(launch="0002", role=Role.TRAINING, scorer="fake", phase="score", ended=1, sides=2),)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def view_of(clock, *engines):
    view = View(watch=Launches(), timings=Timings(engines=engines), clock=clock)
    planned = [
        EnginePlanned(role=role, scorer="fake", sides=2, samples=False) for role in (Role.ROLLOUT, Role.TRAINING)
    ]
    view(Scheduled(engines=planned, reused=1, sides=4, cases=4, jobs=1))
    return view


def drawn(view):
    out = StringIO()
    Console(file=out, width=150).print(view)
    return out.getvalue()


def started(number, config):
    return GroupStarted(number=number, total=2, config=config, sides=2, samples=False)


def test_cases_engines_phases_and_failures_are_shown(clock):
    view = view_of(clock)
    view(started(1, ROLLOUT))
    view(CaseExecuted(case="a", number=1, total=4))
    view(SideFailed(config=TRAINING, side_id="5", status="timeout", reason="too late"))
    clock.now += 65
    text = drawn(view)
    assert "cases 1 of 4" in text and "engines 0 of 2 done, 1 at work, 1 side runs failed" in text
    assert "1:05 so far" in text and "time left unknown" in text
    assert "launch 0002: training fake: score, 1 of 2 side runs" in text
    assert "timeout training fake 5: too late" in text


def test_time_left_comes_from_engines_that_were_measured(clock):
    # 10 s to start and 3 s a side run: 16 s for two; the training scorer was never measured
    view = view_of(clock, EngineTime(role=Role.ROLLOUT, scorer="fake", start_s=10.0, score_s=(2.0, 4.0)))
    view(started(1, ROLLOUT))
    assert view.left_s() is None
    finished = GroupFinished(
        number=1, total=2, config=ROLLOUT, seconds=16.0, failed=0, start_s=10.0, score_s=(3.0, 3.0)
    )
    view(finished)
    assert view.left_s() is None
    view.timings = view.timings.plus(EngineTime(role=Role.TRAINING, scorer="fake", start_s=5.0, score_s=(1.0,)))
    assert view.left_s() == 5.0 + 2 * 1.0
    view(started(2, TRAINING))
    clock.now += 4
    assert view.left_s() == 3.0
    assert "about 0:03 left" in drawn(view)
    clock.now += 40
    assert view.left_s() == 0.0 and "longer than such engines took before" in drawn(view)


def test_an_engine_of_this_run_measures_the_next_of_its_kind(clock):
    view = View(watch=Launches(), timings=Timings(), clock=clock)
    planned = [EnginePlanned(role=Role.ROLLOUT, scorer="fake", sides=sides, samples=False) for sides in (2, 5)]
    view(Scheduled(engines=planned, reused=0, sides=7, cases=7, jobs=2))
    view(started(1, ROLLOUT))
    view(GroupFinished(number=1, total=2, config=ROLLOUT, seconds=8.0, failed=0, start_s=6.0, score_s=(1.0, 1.0)))
    assert view.left_s() == 6.0 + 5 * 1.0


def test_the_phase_of_a_real_engine_on_a_terminal(write):
    tokens = {"recorded": "tokens.jsonl"}
    experiment = write(axes={}, cases=[], slices={}, tokens=tokens, rollout={"scorer": "fake_hang"})
    (experiment.parent / "tokens.jsonl").write_text('{"id": "a", "prompt_ids": [1, 2], "response_ids": [3, 4, 5]}\n')
    command = [sys.executable, "-m", "xcfg.cli", "run", str(experiment), "--allow-fake", "--only", "rollout"]
    command += ["--out", str(experiment.parent / "out"), "--timeout", "3"]
    screen, terminal = pty.openpty()
    environment = {**{name: value for name, value in os.environ.items() if name != "CI"}, "TERM": "xterm"}
    environment["COLUMNS"] = "150"
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment) as run:
        os.close(terminal)
        text = read_all(screen)
    assert run.returncode == 7
    assert "launch 0001: rollout fake_hang: score, 0 of 1 side runs" in text
    assert "timeout rollout" in text


def read_all(screen):
    parts = []
    while True:
        try:
            part = os.read(screen, 4096)
        except OSError:  # Linux tells the end of a terminal by an error
            part = b""
        if not part:
            return b"".join(parts).decode(errors="replace")
        parts.append(part)


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (3723, "1:02:03")])
def test_seconds_as_a_clock_shows_them(seconds, text):
    assert clocked(seconds) == text

"""``xcfg run --json-lines``: a whole run as other programs read it."""

import json
import os
import subprocess
import sys

import pytest

SIDES = {"rollout.dtype": ["bfloat16", "float32"]}


def lines(done):
    """Every line of standard error; each has to be an event."""
    return [json.loads(line) for line in done.err.splitlines()]


def test_a_whole_run_is_told_one_object_a_line(xcfg, write):
    experiment = write(axes=SIDES, cases=[], slices={})
    out = experiment.parent / "out"
    done = xcfg("-q", "run", experiment, "--allow-fake", "--out", out, "--json-lines", "--json", "--jobs", 1)
    assert done.code == 0 and done.document["counts"] == {"pass": 2}
    events = lines(done)
    assert {event["schema"] for event in events} == {"xcfg.event/1"}
    elapsed = [event["elapsed_s"] for event in events]
    assert elapsed == sorted(elapsed) and elapsed[0] >= 0
    # The first engine samples the tokens; a case is complete once the later of its sides is sealed.
    assert [event["event"] for event in events] == [
        "run_started", "scheduled",
        "engine_started", "tokens_frozen", "side_sealed", "engine_finished",
        "engine_started", "side_sealed", "case_executed", "engine_finished",
        "engine_started", "side_sealed", "case_executed", "engine_finished",
        "run_finished",
    ]  # fmt: skip
    by_name = {event["event"]: event for event in events}
    assert [engine["samples"] for engine in by_name["scheduled"]["engines"]] == [True, False, False]
    assert (by_name["scheduled"]["cases"], by_name["scheduled"]["sides"]) == (2, 3)
    sealed = [event["side"]["role"] for event in events if event["event"] == "side_sealed"]
    assert sealed == ["rollout", "training", "rollout"]
    assert [event["number"] for event in events if event["event"] == "case_executed"] == [1, 2]
    finished = [event for event in events if event["event"] == "engine_finished"]
    assert all(0 <= event["start_s"] <= event["seconds"] and len(event["score_s"]) == 1 for event in finished)
    last = events[-1]
    assert (last["status"], last["exit_code"], last["counts"]) == ("pass", 0, {"pass": 2})

    again = lines(xcfg("run", experiment, "--allow-fake", "--out", out, "--json-lines"))
    assert [event["event"] for event in again] == [
        "run_started", "tokens_frozen", "side_reused", "side_reused", "case_executed", "side_reused", "case_executed",
        "scheduled", "run_finished",
    ]  # fmt: skip


def test_a_failing_side_is_told_with_status_and_reason(xcfg, write):
    experiment = write(axes={}, cases=[], slices={}, training={"scorer": "fake_score_crash"})
    done = xcfg("run", experiment, "--allow-fake", "--out", experiment.parent / "out", "--json-lines")
    events = lines(done)
    (failed,) = [event for event in events if event["event"] == "side_failed"]
    assert failed["status"] == "scorer_error" and "cannot score" in failed["reason"]
    assert (events[-1]["exit_code"], done.code) == (7, 7)


@pytest.mark.parametrize("extra", [(), ("--json-lines",)])
def test_a_reader_of_progress_that_left_stops_no_run(write, extra):
    experiment = write(axes={}, cases=[], slices={})
    out = experiment.parent / "out"
    command = [sys.executable, "-m", "xcfg.cli", "run", str(experiment), "--allow-fake", "--out", str(out), "--json"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*command, *extra], stdout=subprocess.PIPE, stderr=writing, text=True, check=False)
    os.close(writing)
    assert (done.returncode, json.loads(done.stdout)["counts"]) == (0, {"pass": 1})

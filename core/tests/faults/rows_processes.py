"""Faults of a side's own processes."""

from attrs import frozen

from .place import Done, Place
from .table import Fault

START, SCORE, STOP = 15, 3, 2
"""Seconds that a part of a launch may take where it hangs."""


@frozen
class Trains:
    """Run the experiment with this training scorer; the rollout side is a good one."""

    scorer: str
    options: tuple[object, ...] = ()

    def __call__(self, place: Place) -> Done:
        place.write(self.scorer)
        return place.run(*self.options)


def _without_vllm(place: Place) -> Done:
    place.write("vllm")
    return place.run()


ROWS = (
    Fault(
        name="the engine cannot be built",
        how="the scorer raises in `open`",
        do=Trains("fake_open_crash"),
        status="launch_error",
        code=7,
        kept="1 sealed, 1 failed",
        says="open: RuntimeError: the fake engine cannot be built",
    ),
    Fault(
        name="child exits 1 while it starts",
        how="`os._exit(1)` in `open`",
        do=Trains("ExitsInOpen"),
        status="launch_error",
        code=7,
        kept="1 sealed, 1 failed",
        says=r"the process ended with exit code 1 \(open\)",
    ),
    Fault(
        name="child exits 1 while it scores",
        how="`os._exit(1)` in `score`",
        do=Trains("ExitsInScore"),
        status="scorer_error",
        code=7,
        kept="1 sealed, 1 failed",
        says=r"the process ended with exit code 1 \(score\)",
    ),
    Fault(
        name="child exits 0 and left nothing",
        how="`os._exit(0)` in `score`",
        do=Trains("LeavesInScore"),
        status="invalid_artifact",
        code=6,
        kept="1 sealed, 1 failed",
        says="0 of 1 ranks left a record",
    ),
    Fault(
        name="child raises while it scores",
        how="the scorer raises in `score`",
        do=Trains("fake_score_crash"),
        status="scorer_error",
        code=7,
        kept="1 sealed, 1 failed",
        says="score: RuntimeError: the fake engine cannot score",
    ),
    Fault(
        name="child is killed while it starts",
        how="SIGKILL in `open`",
        do=Trains("KilledInOpen"),
        status="launch_error",
        code=7,
        kept="1 sealed, 1 failed",
        says=r"the process ended with signal 9 \(open\)",
    ),
    Fault(
        name="child is killed while it scores",
        how="SIGKILL in `score`, as the out-of-memory killer does",
        do=Trains("fake_killed"),
        status="scorer_error",
        code=7,
        kept="1 sealed, 1 failed",
        says=r"the process ended with signal 9 \(score\)",
    ),
    Fault(
        name="child hangs while it starts",
        how=f"`open` never returns; `--start-timeout {START}`",
        do=Trains("HangsInOpen", ("--start-timeout", START)),
        status="timeout",
        code=7,
        kept="1 sealed, 1 failed",
        says=rf"not done after {START} s \(open\); its processes were ended",
    ),
    Fault(
        name="child hangs while it scores",
        how=f"`score` never returns; `--timeout {SCORE}`",
        do=Trains("HangsInScore", ("--timeout", SCORE)),
        status="timeout",
        code=7,
        kept="1 sealed, 1 failed",
        says=rf"not done after {SCORE} s \(score\); its processes were ended",
    ),
    Fault(
        name="child hangs while it stops",
        how=f"`close` never returns; `--stop-timeout {STOP}`; the numbers are sealed already and stand",
        do=Trains("HangsInClose", ("--stop-timeout", STOP)),
        status="pass",
        code=0,
        kept="2 sealed",
    ),
    Fault(
        name="child ignores SIGTERM",
        how=f"and `score` never returns; `--timeout {SCORE}`; SIGKILL ends it",
        do=Trains("Stubborn", ("--timeout", SCORE)),
        status="timeout",
        code=7,
        kept="1 sealed, 1 failed",
        says=rf"not done after {SCORE} s \(score\); its processes were ended",
    ),
    Fault(
        name="child leaves a daemon",
        how="in its own session, orphaned, ignoring SIGTERM; it is ended with the engine",
        do=Trains("Daemon"),
        status="pass",
        code=0,
        kept="2 sealed",
    ),
    Fault(
        name="child leaves a daemon and hangs",
        how=f"both of the above; `--timeout {SCORE}`",
        do=Trains("DaemonAndHang", ("--timeout", SCORE)),
        status="timeout",
        code=7,
        kept="1 sealed, 1 failed",
        says=rf"not done after {SCORE} s \(score\); its processes were ended",
    ),
    Fault(
        name="child fills the log",
        how="16 MiB to standard error while it scores",
        do=Trains("Floods"),
        status="pass",
        code=0,
        kept="2 sealed",
    ),
    Fault(
        name="engine is not installed",
        how="the scorer `vllm` with its plugin left out (`XCFG_DISABLE_PLUGINS`)",
        do=_without_vllm,
        status="error",
        code=4,
        kept="nothing",
        says="vllm.*",
    ),
)

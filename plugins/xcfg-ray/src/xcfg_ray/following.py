"""Follows the machines of a launch: takes over what they write until their commands are over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import ray

from xcfg.plugin.executor import Ended, Ending, Job
from xcfg_ray.carried import Receiver
from xcfg_ray.machine import ENDING_S
from xcfg_ray.waiting import TICK_S

_POLL_S = 0.5
_NEVER = float("inf")


def follow(job: Job, machines: list[Any], watch: Callable[[], object], stop: threading.Event) -> Ended:
    """How the launch ended: as the first machine that did not end well, else as machine 0.

    Once a machine has not ended well, or ``stop`` is set, the others are told to end; what they still write is taken.
    """
    started = time.monotonic()
    receivers = [Receiver(folder=job.place) for _ in machines]
    asked = {machine.poll.remote(_POLL_S): number for number, machine in enumerate(machines)}
    first: Ended | None = None
    until = _NEVER
    while asked and time.monotonic() < until:
        for answer in ray.wait(list(asked), timeout=TICK_S)[0]:
            number = asked.pop(answer)
            sent = ray.get(answer)
            if receivers[number].take(sent):
                watch()
            if sent.over is None:
                asked[machines[number].poll.remote(_POLL_S)] = number
            elif first is None and not _well(ended := _ended(job, number, sent.over, started)):
                first = ended
        if until == _NEVER and asked and (stop.is_set() or first is not None):
            if first is None:
                first = Ended(ending=Ending.STOPPED, code=0, seconds=time.monotonic() - started)
            until = time.monotonic() + ENDING_S
            for number in asked.values():
                machines[number].end.remote()
    return first or _ended(job, 0, 0, started)


def _well(ended: Ended) -> bool:
    return ended.ending is Ending.EXITED and ended.code == 0


def _ended(job: Job, number: int, code: int, started: float) -> Ended:
    """As the command wrote it down; one that did not has failed itself, whatever its exit code."""
    own = Ended(ending=Ending.EXITED, code=code or 1, seconds=time.monotonic() - started)
    return job.ended(number) or own

"""The actor that runs one machine's part of a launch."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from enum import StrEnum

from xcfg.model.codec import dump_json, load_json, structure
from xcfg.plugin.installed import Asked, installed
from xcfg_ray.carried import Part, Sent
from xcfg_ray.changes import Changes
from xcfg_ray.ports import free_port, listens, taken
from xcfg_ray.running import Running

BATCH = 16 << 20
"""Bytes of one answer, more or less: what a cluster's object store has to hold at once."""
ENDING_S = 20.0
"""How long a tree of processes may take to end once it is told to."""
_TICK_S = 0.05


class Meeting(StrEnum):
    """How far machine 0 is with the port on which the machines of a launch meet."""

    AWAITED = "awaited"
    OPEN = "open"
    TAKEN = "taken"
    OVER = "over"


class Machine:
    """Runs the command of one machine, and tells of the files it writes."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._running: Running | None = None
        self._batch: Iterator[Part] | None = None
        self._final = False

    def ready(self) -> None:
        """Answers once the actor is there."""

    def installed(self, asked: str, python: str) -> str:
        """What the interpreter of the ranks has here; question and answer in JSON."""
        question = structure(load_json(asked, where="asked"), Asked)
        return dump_json(installed(question, python))

    def place(self) -> tuple[str, int]:
        """The address of the machine and a port that is free on it."""
        import ray

        return str(ray.util.get_node_ip_address()), free_port()  # type: ignore[no-untyped-call]

    def start(
        self, folder: str, inputs: Mapping[str, bytes], nodes: int = 1, node: int = 0, meet: str = "", here: str = ""
    ) -> None:
        """Start the launch's command as machine ``node`` of ``nodes`` that meet at ``meet``."""
        running = Running(folder, inputs)
        try:
            self._changes = Changes(folder=running.folder, beat=running.scratch / "beat")
            deque(self._changes.batch(everything=True), maxlen=0)  # the inputs are where they came from
            command = running.job.argv(nodes=nodes, node=node, rendezvous=meet, address=here, tied=True)
            running.begin(command, f"machine-{node}.log")
        except BaseException:
            running.discard()
            raise
        self._running = running

    def met(self, port: int, wait: float) -> Meeting:
        """Wait at most ``wait`` seconds for the command to listen on the port."""
        running = self._there()
        until = time.monotonic() + wait
        while True:
            if listens(running.pid, port):
                return Meeting.OPEN
            if running.over() is not None:
                return Meeting.TAKEN if taken(port) else Meeting.OVER
            if time.monotonic() >= until:
                return Meeting.AWAITED
            time.sleep(_TICK_S)

    def poll(self, wait: float) -> Sent:
        """What was written since the last answer; empty after ``wait`` seconds without anything."""
        until = time.monotonic() + wait
        while True:
            sent = self._next(self._there())
            if sent.parts or sent.over is not None or time.monotonic() >= until:
                return sent
            time.sleep(_TICK_S)

    def _next(self, running: Running) -> Sent:
        if self._batch is None:
            self._final = running.over() is not None
            self._batch = self._changes.batch(everything=self._final)
        parts: list[Part] = []
        for part in self._batch:
            parts.append(part)
            if sum(len(item.data) for item in parts) >= BATCH:
                return Sent(parts=tuple(parts), whole=False)
        self._batch = None
        return Sent(parts=tuple(parts), whole=True, over=running.over() if self._final else None)

    def end(self) -> None:
        """Tell the command to end, without waiting for it."""
        self._there().end()

    def finish(self) -> bool:
        """End the command and remove its folder; False where that was not over in time."""
        running, self._running = self._running, None
        return running is None or running.finish(ENDING_S)

    def _there(self) -> Running:
        assert self._running is not None, "no launch was started"
        return self._running

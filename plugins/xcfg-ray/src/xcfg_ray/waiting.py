"""Waiting for answers of the cluster, which a stop cuts short."""

from __future__ import annotations

import threading
from typing import Any

import ray
from attrs import frozen

TICK_S = 0.2
PAUSE_S = 1.0


class Stopped(Exception):
    """The run is being stopped."""


@frozen(kw_only=True)
class Wait:
    """Gets answers. Raises :class:`Stopped`, and what Ray or the actor's code raises."""

    stop: threading.Event

    def one(self, answer: Any) -> Any:
        """The answer behind a reference."""
        while True:
            self.tick()
            if ray.wait([answer], timeout=TICK_S)[0]:
                return ray.get(answer)

    def all(self, answers: list[Any]) -> list[Any]:
        """Every answer, in their order."""
        return [self.one(answer) for answer in answers]

    def pause(self) -> None:
        """Wait a moment."""
        self.stop.wait(PAUSE_S)
        self.tick()

    def tick(self) -> None:
        """Raise where the run is being stopped."""
        if self.stop.is_set():
            raise Stopped

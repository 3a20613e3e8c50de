"""One launch on the cluster: its machines reserved, started, followed to its end and let go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import ray
from attrs import field, frozen
from ray.exceptions import RayActorError, RayError, RayTaskError

from xcfg.errors import EnvironmentFault
from xcfg.model.codec import dump_json, load_json, structure
from xcfg.plugin.executor import Ended, Ending, Job
from xcfg.plugin.installed import Installed
from xcfg_ray.following import follow
from xcfg_ray.inputs import read_inputs
from xcfg_ray.likeness import unlike
from xcfg_ray.machine import Meeting
from xcfg_ray.reserving import reserved
from xcfg_ray.resources import Request
from xcfg_ray.waiting import Stopped, Wait

MEETINGS = 3
"""Ports that the machines of a launch try to meet on."""


@frozen(kw_only=True)
class RayLaunch:
    """Runs one job; ``patience`` is how many seconds a cluster that is too small may take to grow."""

    job: Job
    request: Request
    patience: float
    watch: Callable[[], object]
    stop: threading.Event
    began: float = field(factory=time.monotonic)

    def run(self) -> Ended:
        """Run it until nothing of it is left. Raises EnvironmentFault where it cannot be run at all."""
        wait = Wait(stop=self.stop)
        try:
            with reserved(self.request, self.patience, wait) as machines:
                self._check(machines, wait)
                self._start(machines, wait)
                return follow(self.job, machines, self.watch, self.stop)
        except Stopped:
            return self._ended(Ending.STOPPED)
        except RayTaskError as error:  # raised by our code over there, or by a library that is not there
            raise EnvironmentFault(f"a machine of the cluster failed: {error.cause}", where="--executor ray") from error
        except RayActorError as error:
            if error.actor_init_failed:
                raise EnvironmentFault(f"no actor could be started: {error}", where="--executor ray") from error
            return self._ended(Ending.LOST)
        except RayError:
            return self._ended(Ending.LOST)
        finally:
            self.watch()

    def _ended(self, ending: Ending) -> Ended:
        return Ended(ending=ending, code=0, seconds=time.monotonic() - self.began)

    def _check(self, machines: list[Any], wait: Wait) -> None:
        """Refuse a machine that has other code than this one, which the results are said to be made with."""
        asked = dump_json(self.job.code)
        for answer in wait.all([machine.installed.remote(asked, self.job.python) for machine in machines]):
            if found := unlike(self.job, structure(load_json(answer, where="a machine"), Installed)):
                raise EnvironmentFault(
                    f"a machine of the cluster is not like this one: {found}",
                    where="--executor ray",
                    hint="install the same on every machine",
                )

    def _start(self, machines: list[Any], wait: Wait) -> None:
        inputs = ray.put(read_inputs(self.job))
        if len(machines) == 1:
            wait.one(machines[0].start.remote(self.job.folder, inputs))
            return
        count = len(machines)
        for _ in range(MEETINGS):
            places = wait.all([machine.place.remote() for machine in machines])
            address, port = places[0]
            meet = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
            wait.one(machines[0].start.remote(self.job.folder, inputs, count, 0, meet, address))
            met = Meeting.AWAITED
            while met is Meeting.AWAITED:
                met = Meeting(wait.one(machines[0].met.remote(port, 0.5)))
            if met is not Meeting.TAKEN:
                break
            wait.one(machines[0].finish.remote())
        else:
            raise EnvironmentFault(
                f"{MEETINGS} free ports in turn were taken by another process before the ranks could meet on them",
                where="--executor ray",
            )
        if met is Meeting.OPEN:
            others = list(enumerate(machines))[1:]
            wait.all(
                [
                    machine.start.remote(self.job.folder, inputs, count, number, meet, places[number][0])
                    for number, machine in others
                ]
            )

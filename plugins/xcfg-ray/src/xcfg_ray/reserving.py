"""The actors of a launch: created where the cluster has room, and let go with all they hold."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from xcfg.errors import EnvironmentFault
from xcfg_ray.machine import ENDING_S, Machine
from xcfg_ray.resources import Node, Request
from xcfg_ray.waiting import TICK_S, Wait

_FINISH_S = ENDING_S + 5.0
_NOTICE_S = 120.0
"""How long Ray may take to notice that a node is gone."""


@contextmanager
def reserved(request: Request, patience: float, wait: Wait) -> Iterator[list[Any]]:
    """The actors of a request, running. On leaving, their processes are ended and everything is given back.

    Waits for as long as others hold the resources; raises EnvironmentFault where the cluster does not have them within
    ``patience`` seconds.
    """
    since = time.monotonic()
    while True:
        group = _group(request)
        machines = [_actor(request, group, number) for number in range(request.machines)]
        try:
            _until_running(machines, request, patience, wait)
            break
        except RayActorError as error:  # it was placed on a node that is gone, which Ray does not know yet
            _give_back(machines, group)
            if error.actor_init_failed or time.monotonic() - since > _NOTICE_S:
                raise
            wait.pause()
        except BaseException:
            _give_back(machines, group)
            raise
    try:
        yield machines
    finally:
        _finish(machines)
        _give_back(machines, group)


def nodes() -> list[Node]:
    """The resources of each living node."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def _group(request: Request) -> PlacementGroup | None:
    if request.machines == 1:
        return None
    group: PlacementGroup = placement_group([dict(request.bundle)] * request.machines, strategy=request.strategy)
    return group


def _actor(request: Request, group: PlacementGroup | None, number: int) -> Any:
    wanted = dict(request.bundle)
    options: dict[str, Any] = {
        "num_cpus": wanted.get("CPU", 0),
        "num_gpus": wanted.get("GPU", 0),
        "max_restarts": 0,
        "max_task_retries": 0,
    }
    if "memory" in wanted:
        options["memory"] = wanted["memory"]
    if group is not None:
        options["scheduling_strategy"] = PlacementGroupSchedulingStrategy(
            placement_group=group, placement_group_bundle_index=number
        )
    return ray.remote(Machine).options(**options).remote()


def _until_running(machines: list[Any], request: Request, patience: float, wait: Wait) -> None:
    answers = [machine.ready.remote() for machine in machines]
    since = time.monotonic()
    while True:
        wait.tick()
        ready, answers = ray.wait(answers, num_returns=len(answers), timeout=TICK_S)
        for answer in ready:
            ray.get(answer)
        if not answers:
            return
        if request.fits(nodes()):
            since = time.monotonic()
        elif time.monotonic() - since > patience:
            raise EnvironmentFault(
                f"the cluster has no room for {request.describe()}",
                where="--executor ray",
                hint="ask for less with --executor-option, or give the cluster time to grow with wait=SECONDS",
            )


def _finish(machines: list[Any]) -> None:
    """Wait until nothing of the launch is left; an actor that is lost has nothing to finish."""
    ray.wait([machine.finish.remote() for machine in machines], num_returns=len(machines), timeout=_FINISH_S)


def _give_back(machines: list[Any], group: PlacementGroup | None) -> None:
    for machine in machines:
        ray.kill(machine)
    if group is not None:
        remove_placement_group(group)

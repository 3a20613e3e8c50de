"""Launches on a cluster of three nodes, all on this machine."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

ray = pytest.importorskip("ray", reason="ray is not installed")

from ray.cluster_utils import Cluster  # noqa: E402

from xcfg.cube.sameness import differences  # noqa: E402
from xcfg.errors import EnvironmentFault  # noqa: E402
from xcfg.model.status import Status  # noqa: E402
from xcfg.runner.events import SideSealed  # noqa: E402
from xcfg.testing.elsewhere import GRID, endings, until  # noqa: E402
from xcfg_ray.executor import RayExecutor  # noqa: E402

STORE = 80 << 20
SHORT = "/tmp"
"""Ray has its sockets here, whose paths must be short."""

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def cluster(world) -> Iterator[Cluster]:
    """Its nodes inherit the world's environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TMPDIR", SHORT)
        yield from started()


def started() -> Iterator[Cluster]:
    made = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}
    )
    for _ in range(2):
        made.add_node(num_cpus=2, object_store_memory=STORE)
    made.wait_for_nodes()
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def executor(cluster: Cluster) -> Iterator[RayExecutor]:
    made = RayExecutor({"address": cluster.address, "wait": "1"})
    yield made
    made.close()


def test_a_grid_is_the_same_bit_for_bit(world, executor: RayExecutor, local: Path, tmp_path: Path) -> None:
    assert executor.slots() == 4
    report = world.run(tmp_path / "out", executor, axes=GRID)
    assert report.engines.constructed == 4
    assert all(run.failure is None for run in report.sides.values())
    assert differences(tmp_path / "out/cube.zarr", local / "cube.zarr") == {}
    assert endings(tmp_path / "out") == ["exited"] * 4
    assert not world.left()


def test_two_ranks_meet_in_a_placement_group(world, executor: RayExecutor, tmp_path: Path) -> None:
    pytest.importorskip("torch")  # brings the launcher
    baseline = {"training.world_size": 2}
    report = world.run(tmp_path / "out", executor, training="testing.fake", baseline=baseline, timeout=120.0)
    (run,) = [run for config, run in report.sides.items() if run.config.scorer == "testing.fake"]
    assert run.failure is None
    assert [info.rank for info in run.result.ranks] == [0, 1]
    assert run.result.samples.rank.tolist() == [0, 1, 0, 1]
    (launch,) = [item for item in (tmp_path / "out/launches").iterdir() if (item / "logs/node-1").is_dir()]
    assert {path.name for path in launch.glob("*ended.json")} == {"ended.json", "node-1-ended.json"}
    assert not world.left()


def test_a_rank_that_fails_ends_those_of_the_other_machines(world, executor: RayExecutor, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    targets = {**world.registry.targets, "testing.fake": "OneRankFails"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.registry), "targets", targets)
        baseline = {"training.world_size": 2}
        report = world.run(tmp_path / "out", executor, training="testing.fake", baseline=baseline)
    (failure,) = [run.failure for run in report.sides.values() if run.failure]
    assert failure.status == Status.SCORER_ERROR and "rank one is out" in failure.reason
    assert not world.left()


def test_a_stop_leaves_nothing(world, executor: RayExecutor, tmp_path: Path) -> None:
    world.shut()
    threads: list[threading.Thread] = []

    def stop_when_waiting(event: Any) -> None:
        """A KeyboardInterrupt in the main thread, as Ctrl-C is."""
        if isinstance(event, SideSealed) and not threads:
            threads.append(threading.Thread(target=interrupt))
            threads[0].start()

    def interrupt() -> None:
        until(world.marks)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        world.run(tmp_path / "out", executor, axes=GRID, on_event=stop_when_waiting, jobs=2)
    threads[0].join()
    assert not world.left()
    world.go()
    sealed = len(list((tmp_path / "out").glob("sides/*/attempt-*/COMPLETE")))
    assert sealed >= 1
    report = world.run(tmp_path / "out", executor, axes=GRID)
    assert sum(run.reused for run in report.sides.values()) == sealed


def test_what_no_node_has_is_an_environment_error(
    world, cluster: Cluster, executor: RayExecutor, tmp_path: Path
) -> None:
    greedy = RayExecutor({"gpus_per_rank": "1", "wait": "0.5"})
    report = world.run(tmp_path / "out", greedy)
    reasons = {run.failure.reason for run in report.sides.values() if run.failure}
    assert {run.failure.status for run in report.sides.values() if run.failure} == {Status.ENVIRONMENT_ERROR}
    assert all("no room for a machine with CPU 1, GPU 1" in reason for reason in reasons)


def test_a_lost_node_is_done_without(
    world, cluster: Cluster, executor: RayExecutor, local: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The node goes while its engine scores: one side run is sealed, the next is not."""
    world.shut()
    victims: list[Any] = []

    def kill(event: Any) -> None:
        if isinstance(event, SideSealed) and not victims:
            until(world.marks)
            victims.append(busy(cluster))
            cluster.remove_node(victims[0], allow_graceful=False)
            until(lambda: not any(psutil.pid_exists(pid) for pid in world.marks()))
            world.go()

    report = world.run(tmp_path / "out", executor, axes=GRID, on_event=kill, jobs=1)
    assert all(run.failure is None for run in report.sides.values())
    assert differences(tmp_path / "out/cube.zarr", local / "cube.zarr") == {}
    ended = endings(tmp_path / "out")
    assert ended[0] == "lost" and ended.count("exited") == 4
    attempts = list((tmp_path / "out").glob("sides/*/attempt-*"))
    assert len(attempts) == len(report.sides) == 8  # what was sealed was not scored again
    until(lambda: not world.left())
    assert capfd.readouterr().out == ""
    with pytest.raises(EnvironmentFault):
        RayExecutor({"address": "127.0.0.1:1"})


def busy(cluster: Cluster) -> Any:
    """The node of which a CPU is taken."""
    from ray._private.state import available_resources_per_node

    free = available_resources_per_node()
    (found,) = [node for node in cluster.list_all_nodes() if free[node.node_id].get("CPU") == 1]
    return found

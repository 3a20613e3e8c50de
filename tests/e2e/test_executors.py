"""One grid through three executors: this machine, a Ray cluster that loses a node, jobs of submitit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

ray = pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("submitit", reason="submitit is not installed")

from ray.cluster_utils import Cluster  # noqa: E402

from xcfg.cube.sameness import differences  # noqa: E402
from xcfg.runner.events import SideSealed  # noqa: E402
from xcfg.testing.elsewhere import GRID, ExecutorWorld, endings, executor_world, until  # noqa: E402
from xcfg_ray.executor import RayExecutor  # noqa: E402
from xcfg_slurm.executor import SlurmExecutor  # noqa: E402

STORE = 80 << 20
AXES = {**GRID, "training.output_dtype": [None, "float32"], "rollout.tensor_parallel_size": [1, 2]}
"""64 cases of 8 engines, each with 2 side runs."""

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExecutorWorld]:
    with executor_world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture
def cluster(world: ExecutorWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A head without CPUs, which the coordinator is connected to, and three nodes."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_TMPDIR", "/tmp")  # Ray has its sockets there, whose paths must be short
    head = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(3):
        made.add_node(num_cpus=1, object_store_memory=STORE)
    made.wait_for_nodes()
    yield made
    made.shutdown()


def counts(name: str, out: Path) -> str:
    ended = endings(out)
    attempts = list(out.glob("sides/*/attempt-*"))
    sealed = list(out.glob("sides/*/attempt-*/COMPLETE"))
    cases = list(out.glob("cases/*/comparison.json"))
    return (
        f"{name:14} {len(ended)} launches, {ended.count('lost')} lost; {len(attempts)} attempts, {len(sealed)} sealed; "
        f"{len(cases)} cases"
    )


def test_the_same_result_group_everywhere(world: ExecutorWorld, cluster: Cluster, tmp_path: Path) -> None:
    told = []
    here = tmp_path / "local"
    world.run(here, axes=AXES, jobs=2)
    told.append(counts("local", here))

    world.shut()
    killed: list[Any] = []

    def kill(event: Any) -> None:
        """Take a node away while all three are in the middle of a launch."""
        if isinstance(event, SideSealed) and not killed:
            killed.append(cluster.list_all_nodes()[-1])
            until(lambda: len(world.marks()) == 3)
            cluster.remove_node(killed[0], allow_graceful=False)
            until(lambda: sum(map(psutil.pid_exists, world.marks())) == 2)
            world.go()

    there = tmp_path / "ray"
    executor = RayExecutor({"address": cluster.address})
    assert executor.slots() == 3
    world.run(there, executor, axes=AXES, on_event=kill)
    executor.close()
    told.append(counts("ray", there))

    queued = tmp_path / "slurm"
    world.run(queued, SlurmExecutor({"cluster": "local"}), axes=AXES, jobs=2)
    told.append(counts("submitit local", queued))

    print("\n" + "\n".join(told))
    for out in (there, queued):
        assert differences(out / "cube.zarr", here / "cube.zarr") == {}
        assert len(list(out.glob("sides/*/attempt-*"))) == 16  # nothing was scored twice
        assert len(list(out.glob("cases/*/comparison.json"))) == 64
    assert endings(there).count("lost") >= 1 and endings(there).count("exited") == 8
    until(lambda: not world.left())

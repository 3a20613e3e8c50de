"""The kit's checks of an executor, on a cluster of three nodes that are all on this machine."""

from __future__ import annotations

import psutil
import pytest

pytest.importorskip("ray", reason="ray is not installed")

from xcfg.testing import ExecutorTests
from xcfg.testing.elsewhere import until
from xcfg_ray.executor import RayExecutor
from xcfg_ray.plugin import xcfg_executors

from .test_ray_cluster import SHORT, busy, started

(RAY,) = xcfg_executors()


@pytest.fixture(scope="class")
def cluster(world):
    """Its nodes inherit the world's environment, so the world is one for all checks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TMPDIR", SHORT)
        yield from started()


@pytest.mark.full
class TestRay(ExecutorTests):
    descriptor = RAY

    @pytest.fixture(scope="class")
    @classmethod
    def world(cls, world):
        return world

    @pytest.fixture(autouse=True)
    def _cluster(self, cluster):
        self.cluster = cluster

    def make_executor(self):
        return RayExecutor({"address": self.cluster.address, "wait": "30"})

    def lose_machine(self, executor, world):
        """The node goes while its engine scores."""
        self.cluster.remove_node(busy(self.cluster), allow_graceful=False)
        until(lambda: not any(psutil.pid_exists(pid) for pid in world.marks()))

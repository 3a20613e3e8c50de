"""The executor of core, and the kit's own executor that brings files from another place, against the kit."""

from __future__ import annotations

import pytest

from xcfg.builtin.executors import EXECUTORS
from xcfg.testing import ExecutorTests
from xcfg.testing.away import AWAY


class TestLocal(ExecutorTests):
    descriptor = EXECUTORS[0]


@pytest.mark.full
class TestAway(ExecutorTests):
    descriptor = AWAY

    def lose_machine(self, executor, world):
        executor.lose()

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from xcfg.testing.elsewhere import GRID, ExecutorWorld, executor_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExecutorWorld]:
    with executor_world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture(scope="session")
def local(world: ExecutorWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the executor of this machine gives."""
    out = tmp_path_factory.mktemp("local") / "out"
    world.run(out, axes=GRID, jobs=2)
    return out

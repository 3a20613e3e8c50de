from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from xcfg.errors import ArtifactError, Fault
from xcfg.model.recorded import Row


@pytest.fixture
def refused() -> Callable[[Callable[[], object]], Fault]:
    """Calls what must raise ArtifactError, drains it where it is an iterator, and gives the one fault."""

    def call(action: Callable[[], object]) -> Fault:
        with pytest.raises(ArtifactError) as raised:
            found = action()
            if isinstance(found, Iterator):
                list(found)
        (fault,) = raised.value.faults
        return fault

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    """A file of the given name and content."""

    def made(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return made


@pytest.fixture
def row() -> Row:
    return Row("f.jsonl line 3", {"id": "a", "logprob": [1.0], "nothing": None})

"""The command line called in this process, and in the folder of the test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from xcfg.cli.entry import main


@frozen
class Done:
    """Exit code and output of one call."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is where the process is."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def xcfg(capfd: pytest.CaptureFixture[str], here: Path) -> Callable[..., Done]:
    def call(*arguments: object) -> Done:
        capfd.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main([str(item) for item in arguments])
        out, err = capfd.readouterr()
        return Done(int(leaving.value.code or 0), out, err)

    return call

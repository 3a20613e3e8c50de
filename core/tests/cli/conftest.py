"""A small experiment on the fake scorers, and the command line called in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from xcfg.cli.entry import main

from .searched import SETTINGS, command
from .small_experiment import EXPERIMENT, make_files


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
def xcfg(capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def call(*arguments: object) -> Done:
        capfd.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main([str(item) for item in arguments])
        out, err = capfd.readouterr()
        return Done(int(leaving.value.code or 0), out, err)

    return call


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Hide a plugin as though its distribution were not there."""
    from xcfg.plugin import inventory

    real = inventory.entry_points

    def hide(name: str) -> None:
        monkeypatch.setattr(
            inventory, "entry_points", lambda **group: [entry for entry in real(**group) if entry.name != name]
        )

    return hide


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write the experiment with its model and prompts; fields given by keyword replace those of the template."""
    make_files(tmp_path)

    def make(**changes: Any) -> Path:
        path = tmp_path / "experiment.json"
        path.write_text(json.dumps({**EXPERIMENT, **changes}))
        return path

    return make


@pytest.fixture
def experiment(write):
    def make(**changes):
        return write(**{**SETTINGS, **changes})

    return make


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The files of the experiment, for what is executed once."""
    path = tmp_path_factory.mktemp("searched")
    make_files(path)
    (path / "experiment.json").write_text(json.dumps({**EXPERIMENT, **SETTINGS}))
    return path


@pytest.fixture(scope="session")
def searched(folder):
    """The document of one search that runs to its end; ``out`` is its folder, ``gate.json`` beside the experiment."""
    out, gate = folder / "out", folder / "gate.json"
    return command("search", folder / "experiment.json", "--allow-fake", "--out", out, "--gate", gate)

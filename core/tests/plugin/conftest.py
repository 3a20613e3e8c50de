from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

from xcfg.cli import mounted as mounted_module
from xcfg.plugin import inventory as inventory_module
from xcfg.testing.distributions import write_distribution


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Adds fake distributions; besides them only core is seen, whatever else this environment has."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    core = metadata.distribution("xcfg")

    def visible(group: str) -> list[metadata.EntryPoint]:
        found = [*metadata.distributions(path=[str(site)]), core]
        return [entry for distribution in found for entry in distribution.entry_points if entry.group == group]

    monkeypatch.setattr(inventory_module, "entry_points", visible)
    monkeypatch.setattr(mounted_module, "entry_points", visible)
    modules: list[str] = []

    def add(name: str, source: str = "", **options: object) -> str:
        modules.append(write_distribution(site, name, source, **options))  # type: ignore[arg-type]
        return modules[-1]

    yield add
    for module in modules:
        sys.modules.pop(module, None)

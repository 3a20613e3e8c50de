"""Broken distributions in a folder that commands, as processes of their own, find on ``PYTHONPATH``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from xcfg.testing.distributions import write_distribution

SOURCES = Path(__file__).parents[3] / "tests/workspace/broken_plugins"
MARK = "from pathlib import Path as _Path; _Path(__file__).with_suffix('.imported').touch()\n"


@frozen
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output."""
        return json.loads(self.out)

    @property
    def said(self) -> str:
        """Every error with its place and hint."""
        return "\n".join(f"{item['where']}: {item['message']} ({item['hint']})" for item in self.document["errors"])


@frozen
class Site:
    """The folder."""

    folder: Path

    def add(self, name: str, *, distribution: str = "", **options: Any) -> Path:
        """Install the plugin module ``NAME.py`` as ``xcfg-NAME``; importing it leaves a mark. Returns its dist-info."""
        source = MARK + (SOURCES / f"{name.replace('-', '_')}.py").read_text()
        return self.write(distribution or f"xcfg-{name}", source, **options)

    def write(self, distribution: str, source: str, **options: Any) -> Path:
        """Install a distribution with this text as its plugin module."""
        write_distribution(self.folder, distribution, source, **options)
        return next(self.folder.glob(f"{distribution.replace('-', '_')}-*.dist-info"))

    @property
    def imported(self) -> set[str]:
        """Names of the modules that were imported."""
        return {path.stem for path in self.folder.glob("*.imported")}

    def python(self, *arguments: object, cwd: Path | None = None) -> Ended:
        """``python ARGUMENTS`` with the folder on its path."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        line = [sys.executable, *map(str, arguments)]
        done = subprocess.run(line, capture_output=True, text=True, env=environment, cwd=cwd, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)

    def xcfg(self, *arguments: object) -> Ended:
        """A command."""
        return self.python("-m", "xcfg.cli", *arguments)


def without_version(info: Path) -> None:
    _keep(info, lambda line: not line.startswith("Version"))


def without_name(info: Path) -> None:
    """The folder still has it; the file also lacks the version, or nothing would be wrong."""
    _keep(info, lambda line: not line.startswith(("Name", "Version")))


def without_metadata(info: Path) -> None:
    (info / "METADATA").unlink()


def metadata_in_no_encoding(info: Path) -> None:
    (info / "METADATA").write_bytes(b"Metadata-Version: 2.1\nName: \xff\xfe\n")


def garbled_requirement(info: Path) -> None:
    with (info / "METADATA").open("a") as file:
        file.write("Requires-Dist: xcfg >>> what\nRequires-Dist: a; extra == 'b'\nProvides-Extra: b\n")


def garbled_entry_points(info: Path) -> None:
    (info / "entry_points.txt").write_text("[xcfg]\nno equals sign\n")


def entry_points_in_no_encoding(info: Path) -> None:
    (info / "entry_points.txt").write_bytes(b"[xcfg]\n\xff\xfe = module\n")


def entry_point_without_module(info: Path) -> None:
    name = info.name.partition("-")[0].removeprefix("xcfg_").replace("_", "-")
    (info / "entry_points.txt").write_text(f"[xcfg]\n{name} =\n")


def module_that_is_not_there(info: Path) -> None:
    (info.parent / f"{info.name.partition('-')[0]}_plugin.py").unlink()


def damaged_compatibility(info: Path) -> None:
    """Not the plugin's module, but a file beside it: the module becomes a package."""
    name = f"{info.name.partition('-')[0]}_plugin"
    (info.parent / name).mkdir()
    (info.parent / f"{name}.py").rename(info.parent / name / "__init__.py")
    (info.parent / name / "compatibility.json").write_text("{")


def _keep(info: Path, wanted: Callable[[str], bool]) -> None:
    path = info / "METADATA"
    lines: Sequence[str] = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in lines if wanted(line)))

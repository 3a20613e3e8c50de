"""One ordinary knob of a third party: one descriptor, one materializer, and nothing of this repository is touched.

The distribution is built and installed into a folder of its own, which the commands find on ``PYTHONPATH``.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CHECKPOINT = Path(__file__).parents[2] / "docs/examples/qwen3-tiny"
KNOB = "thirdparty.cpu_kernels"

FILES = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "xcfg-thirdparty"
version = "0.1.0"
dependencies = ["xcfg>=0.1,<0.2"]

[project.entry-points.xcfg]
thirdparty = "xcfg_thirdparty.plugin"
""",
    "xcfg_thirdparty/__init__.py": "",
    "xcfg_thirdparty/plugin.py": """
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.scorer import MaterializerDescriptor
from xcfg.plugin import hookimpl

@hookimpl
def xcfg_knobs():
    return [
        Knob(
            name="thirdparty.cpu_kernels",
            summary="Vector instructions of torch's CPU kernels; null is the widest the machine has",
            source_class=SourceClass.REDUCTION,
            lifecycle=Lifecycle.PROCESS,
            targets=Target.ROLLOUT,
            domain=Domain(kind=Kind.STR, values=("default", "avx2"), optional=True),
        )
    ]

@hookimpl
def xcfg_materializers():
    return [
        MaterializerDescriptor(
            knob="thirdparty.cpu_kernels",
            scorer="torch",
            lifecycle=Lifecycle.PROCESS,
            target="xcfg_thirdparty.materialize:CpuKernels",
        )
    ]
""",
    "xcfg_thirdparty/materialize.py": """
from xcfg.model.capability import Supported, Unsupported

class CpuKernels:
    def probe(self, knob, value, spec):
        found = self.read_back(knob, None)
        return Supported() if value in (None, found) else Unsupported(f"torch takes {found} here")

    def apply(self, knob, value, settings):
        if value is not None:
            settings.env["ATEN_CPU_CAPABILITY"] = value
        return value

    def read_back(self, knob, live):
        import torch

        return torch.backends.cpu.get_cpu_capability().lower()
""",
}
"""The whole distribution."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the installed distribution."""
    folder = tmp_path_factory.mktemp("thirdparty")
    for name, text in FILES.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", folder / "site", folder / "source"], check=True, capture_output=True)
    return folder / "site"


@pytest.fixture(scope="module")
def xcfg(site: Path) -> Callable[..., tuple[int, dict[str, Any]]]:
    """The exit code and the document of a command, with the distribution installed."""

    def call(*arguments: object) -> tuple[int, dict[str, Any]]:
        command = [sys.executable, "-m", "xcfg.cli", *(str(item) for item in arguments), "--json"]
        environment = {**os.environ, "PYTHONPATH": str(site)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return call


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """The torch scorer against itself in float32, the knob on an axis."""
    tokens = [{"id": str(row), "prompt_ids": [5 + row], "response_ids": list(range(20, 84))} for row in range(4)]
    (tmp_path / "tokens.jsonl").write_text("".join(json.dumps(item) + "\n" for item in tokens))
    content = {
        "schema": "xcfg.experiment/1",
        "name": "cpu-kernels",
        "checkpoint": {"path": str(CHECKPOINT)},
        "rollout": {"scorer": "torch"},
        "training": {"scorer": "torch"},
        "tokens": {"recorded": "tokens.jsonl"},
        "baseline": {
            "rollout.dtype": "float32",
            "training.compute_dtype": "float32",
            "rollout.scoring_path": "prefill",
            "execution.threads": 1,
            KNOB: "avx2",
        },
        "axes": {KNOB: ["default", "avx2"]},
    }
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(content))
    return path


def test_it_registers_one_descriptor_of_each_kind(xcfg: Callable[..., tuple[int, dict[str, Any]]], site: Path) -> None:
    _, listed = xcfg("plugins", "list")
    (plugin,) = (item for item in listed["plugins"] if item["name"] == "thirdparty")
    assert (plugin["distribution"], plugin["state"], plugin["error"]) == ("xcfg-thirdparty", "available", "")
    command = [sys.executable, "-m", "xcfg.plugin.describe"]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    (found,) = (
        item["contribution"]
        for item in json.loads(done.stdout)["plugins"]
        if item["info"]["distribution"] == "xcfg-thirdparty"
    )
    numbers = {name: len(items) for name, items in found.items() if isinstance(items, list) and items}
    assert numbers == {"knobs": 1, "materializers": 1}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="torch has these kernels on x86-64 only")
def test_it_runs_as_an_axis_with_every_value_proven(
    xcfg: Callable[..., tuple[int, dict[str, Any]]], experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    code, document = xcfg("run", experiment, "--out", out)
    assert code in (0, 1), document
    assert document["counts"] and not document["fake"]
    by_value = {case["axes"][KNOB]: case for case in document["cases"]}
    assert list(by_value) == ["avx2", "default"]
    for value, case in by_value.items():
        found = case["knobs"][KNOB]["sides"]["rollout"]
        assert (found["requested"], found["materialized"], found["observed"]) == (value, value, value)
        assert found["state"] == "applied"
        assert case["status"] in ("pass", "fail") and case["active_tokens"] == 4 * 64
    # Two rollout engines and one training engine: a value of the knob is a process of its own.
    assert document["engines"]["constructed"] == 3
    _, cube = xcfg("cube", "query", out)
    assert {row[KNOB] for row in cube["rows"]} == {"avx2", "default"}
    # The sums of the narrow kernels run in another order, which float32 shows.
    assert by_value["default"]["metrics"]["frac_unequal"] > 0

"""One kernel of a third party: an implementation and a descriptor, and nothing of this repository is touched.

The distribution is built and installed into a folder of its own, which the commands find on ``PYTHONPATH``. It brings
its own tests, which are the conformance kit.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from xcfg.plugin.registry import load_registry

CHECKPOINT = Path(__file__).parents[2] / "docs/examples/qwen3-tiny"
KNOB = "logp.backend"
TOKENS = 4 * 64

FILES = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "xcfg-wide"
version = "0.3.0"
dependencies = ["xcfg>=0.1,<0.2"]

[project.entry-points.xcfg]
wide = "xcfg_wide.plugin"
""",
    "xcfg_wide/__init__.py": "",
    "xcfg_wide/plugin.py": """
from xcfg.model.scorer import KernelBackendDescriptor, Role
from xcfg.plugin import hookimpl

WIDE = KernelBackendDescriptor(
    operator="selected_logprob",
    id="wide",
    summary="log-sum-exp in float64, rounded once",
    target="xcfg_wide.backend:WideLogprob",
    roles=(Role.ROLLOUT, Role.TRAINING),
    dtypes=("float32",),
)

@hookimpl
def xcfg_kernel_backends():
    return [WIDE]
""",
    "xcfg_wide/backend.py": """
from contextlib import contextmanager

from xcfg.model.capability import Supported, Unsupported
from xcfg.model.kernel import BoundKernel

class Bound:
    def __call__(self, logits, targets):
        import torch

        wide = logits.double()
        chosen = wide.gather(1, targets[:, None])[:, 0]
        return (chosen - torch.logsumexp(wide, dim=1)).float()

class WideLogprob:
    def probe(self, request):
        asked = (request.operator, request.device, request.dtype)
        if asked != ("selected_logprob", "cpu", "float32"):
            return Unsupported(f"wide computes selected_logprob of float32 on a CPU, not {asked}")
        return Supported()

    @contextmanager
    def bind(self, request):
        yield Bound()

    def identify(self, bound):
        import torch

        return BoundKernel(
            backend="wide",
            concrete=f"{type(bound).__module__}.{type(bound).__qualname__}",
            build=f"xcfg-wide 0.3.0, torch {torch.__version__}",
        )
""",
    "tests/test_wide.py": """
import torch

from xcfg.testing import KernelBackendTests, PluginTests
from xcfg_wide.backend import WideLogprob
from xcfg_wide.plugin import WIDE

class TestPlugin(PluginTests):
    name = "wide"
    distribution = "xcfg-wide"

class TestBackend(KernelBackendTests):
    descriptor = WIDE
    atol = 1e-6

    def make_backend(self):
        return WideLogprob()

    def to_engine(self, values):
        return torch.from_numpy(values)

    def to_numpy(self, values):
        return values.numpy()
""",
}
"""The whole distribution."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the installed distribution, beside ``source``."""
    pytest.importorskip("xcfg_torch")
    folder = tmp_path_factory.mktemp("thirdparty")
    for name, text in FILES.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", folder / "site", folder / "source"], check=True, capture_output=True)
    return folder / "site"


def command(site: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A Python module's command with the distribution installed."""
    line = [sys.executable, "-m", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(line, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def ran(site: Path) -> tuple[Path, dict[str, Any]]:
    """The output folder and the document of an experiment that chooses the kernel by its id, on an axis."""
    tokens = [{"id": str(row), "prompt_ids": [5 + row], "response_ids": list(range(20, 84))} for row in range(4)]
    (site.parent / "tokens.jsonl").write_text("".join(json.dumps(item) + "\n" for item in tokens))
    content = {
        "schema": "xcfg.experiment/1",
        "name": "third-party-kernel",
        "checkpoint": {"path": str(CHECKPOINT)},
        "rollout": {"scorer": "torch"},
        "training": {"scorer": "torch"},
        "tokens": {"recorded": "tokens.jsonl"},
        "baseline": {
            "rollout.dtype": "float32",
            "training.compute_dtype": "float32",
            "rollout.scoring_path": "prefill",
            "execution.threads": 1,
            KNOB: "reference",
        },
        "axes": {KNOB: ["reference", "wide"]},
    }
    (site.parent / "experiment.json").write_text(json.dumps(content))
    out = site.parent / "out"
    done = command(site, "xcfg.cli", "run", site.parent / "experiment.json", "--out", out, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return out, json.loads(done.stdout)


def attempts(out: Path, backend: str) -> list[Path]:
    """The side runs that chose the backend."""
    found = []
    for folder in sorted(out.glob("sides/*/attempt-0001")):
        side = json.loads((folder / "requested.json").read_text())["side"]
        if side["operators"]["selected_logprob"]["backend"] == backend:
            found.append(folder)
    return found


def test_it_brings_a_plugin_and_nothing_else(site: Path) -> None:
    assert {path.name for path in site.iterdir()} == {"xcfg_wide", "xcfg_wide-0.3.0.dist-info"}
    listed = json.loads(command(site, "xcfg.cli", "plugins", "list", "--json").stdout)
    (plugin,) = (item for item in listed["plugins"] if item["name"] == "wide")
    assert (plugin["distribution"], plugin["state"], plugin["error"]) == ("xcfg-wide", "available", "")


def test_it_passes_the_conformance_kit(site: Path) -> None:
    folder = site.parent / "source/tests"
    done = command(site, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout and "skipped" not in done.stdout


def test_the_axis_selects_it_by_id_and_it_is_read_back(ran: tuple[Path, dict[str, Any]]) -> None:
    _, document = ran
    by_value = {case["axes"][KNOB]: case for case in document["cases"]}
    assert sorted(by_value) == ["reference", "wide"]
    for value, case in by_value.items():
        assert (case["status"], case["active_tokens"]) == ("pass", TOKENS)
        for side in ("rollout", "training"):
            found = case["knobs"][KNOB]["sides"][side]
            assert (found["requested"], found["materialized"], found["observed"]) == (value, value, value)
            assert found["state"] == "applied"


def test_it_stands_in_the_provenance(ran: tuple[Path, dict[str, Any]]) -> None:
    out, _ = ran
    folders = attempts(out, "wide")
    assert len(folders) == 2
    for folder in folders:
        bound = json.loads((folder / "observed.json").read_text())["operators"]["selected_logprob"]
        assert (bound["backend"], bound["concrete"], bound["fallback"]) == ("wide", "xcfg_wide.backend.Bound", False)
        assert bound["build"].startswith("xcfg-wide 0.3.0, torch ")
        made = json.loads((folder / "environment.json").read_text())["fingerprint"]
        assert made["distributions"]["xcfg-wide"] == "0.3.0" and len(made["code"]["xcfg_wide"]) == 64
    for folder in attempts(out, "reference"):
        made = json.loads((folder / "environment.json").read_text())["fingerprint"]
        assert "xcfg-wide" not in made["distributions"]


def test_its_numbers_are_its_own(ran: tuple[Path, dict[str, Any]]) -> None:
    out, _ = ran
    wide, reference = (
        load_file(attempts(out, backend)[0] / "samples.safetensors")["logprobs"] for backend in ("wide", "reference")
    )
    gap = np.abs(wide.astype(np.float64) - reference.astype(np.float64))
    assert 0 < gap.max() <= load_registry().contract("ws1").max_abs_dlogp["float32"]
    print(f"{(gap > 0).sum()} of {gap.size} logprobs differ, at most by {gap.max():.2g}")

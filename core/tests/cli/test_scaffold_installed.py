"""Distributions made by ``xcfg init``: installed, registered by their metadata, tested by the kit, and used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import frozen

from xcfg.testing.checkpoints import write_checkpoint

pytest.importorskip("hatchling", reason="nothing builds a distribution here")
KINDS = [
    pytest.param("importer"),
    pytest.param("plugin", marks=pytest.mark.full),
    pytest.param("kernel", marks=pytest.mark.full),
]


@frozen
class Installed:
    """A distribution in its folder, installed into another that the commands find on ``PYTHONPATH``."""

    kind: str
    folder: Path
    site: Path

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """A Python module's command in the distribution's folder."""
        line = [sys.executable, "-m", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(line, capture_output=True, text=True, env=environment, cwd=self.folder, check=False)

    def xcfg(self, *arguments: object) -> dict:
        """The document of a command that passes."""
        done = self.run("xcfg.cli", *arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """One distribution of each kind, called ``my-thing``."""
    if request.param == "kernel":
        pytest.importorskip("torch")
    root = tmp_path_factory.mktemp("made")
    made = Installed(request.param, root / "xcfg-my-thing", root / "site")
    subprocess.run([sys.executable, "-m", "xcfg.cli", "init", made.kind, "my-thing"], cwd=root, check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", made.site, made.folder], check=True, capture_output=True)
    return made


def test_it_registers(made: Installed) -> None:
    rows = {row["name"]: row for row in made.xcfg("plugins", "list")["plugins"]}
    assert (rows["my-thing"]["distribution"], rows["my-thing"]["state"]) == ("xcfg-my-thing", "available")
    assert made.xcfg("plugins", "check")["failures"] == {}
    group = {"plugin": "scorers", "kernel": "backends", "importer": "importers"}[made.kind]
    (row,) = [row for row in made.xcfg(group, "list")[group] if row["distribution"] == "xcfg-my-thing"]
    assert row["id"].endswith("my-thing")


def test_it_passes_the_kit(made: Installed) -> None:
    done = made.run("pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.rpartition(" passed")[0].split()[-1]) > 15


def test_its_documentation_builds(made: Installed, tmp_path: Path) -> None:
    pytest.importorskip("myst_parser")
    done = made.run("sphinx", "-q", "-W", "-b", "html", "docs", tmp_path / "html")
    assert done.returncode == 0, done.stderr
    assert "xcfg-my-thing" in (tmp_path / "html/index.html").read_text()


def test_it_does_what_it_is_for(made: Installed, tmp_path: Path) -> None:
    {"plugin": _scores, "kernel": _computes, "importer": _reads}[made.kind](made, tmp_path)


def _reads(made: Installed, folder: Path) -> None:
    """Two tokens, the second 0.02 apart."""
    row = {"uid": 7, "prompt": [1], "tokens": [5, 6], "sampler_logps": [-0.5, -1.0], "trainer_logps": [-0.5, -1.02]}
    path = folder / "steps.jsonl"
    path.write_text(json.dumps(row) + "\n")
    document = made.xcfg("compare", path, path, "--dtype", "bfloat16")
    assert document["active_tokens"] == 2
    assert document["metrics"]["max_abs_dlogp"] == pytest.approx(0.02)


def _scores(made: Installed, folder: Path) -> None:
    """The scorer on both sides with its knob on an axis: equal tables pass, and what was applied is observed."""
    write_checkpoint(folder / "model")
    rows = [{"id": f"s{row}", "prompt_ids": [1 + row], "response_ids": [3, 4 + row, 5]} for row in range(3)]
    (folder / "tokens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    content = {
        "schema": "xcfg.experiment/1",
        "name": "made",
        "checkpoint": {"path": "model"},
        "rollout": {"scorer": "my-thing"},
        "training": {"scorer": "my-thing"},
        "tokens": {"recorded": "tokens.jsonl"},
        "baseline": {"my_thing.table_dtype": "float32"},
        "axes": {"my_thing.table_dtype": ["float32", "float16"]},
    }
    (folder / "experiment.json").write_text(json.dumps(content))
    document = made.xcfg("run", folder / "experiment.json", "--out", folder / "out")
    assert {case["status"] for case in document["cases"]} == {"pass"}
    for case in document["cases"]:
        sides = case["knobs"]["my_thing.table_dtype"]["sides"]
        wanted = case["axes"]["my_thing.table_dtype"]
        assert {side["observed"] for side in sides.values()} == {wanted}


def _computes(made: Installed, folder: Path) -> None:
    """The kernel gives -log 2 for two equal logits, called as the host calls it."""
    program = (
        "import torch; from xcfg.model.kernel import KernelRequest; from xcfg_my_thing.backend import MyThingBackend\n"
        "asked = KernelRequest(operator='selected_logprob', device='cpu', dtype='float32', vocab_size=2)\n"
        "with MyThingBackend().bind(asked) as kernel:\n    print(kernel(torch.zeros(1, 2), torch.tensor([0])).item())"
    )
    environment = {**os.environ, "PYTHONPATH": str(made.site)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert float(done.stdout) == pytest.approx(-0.6931472, abs=1e-6)

"""The example distribution with a C kernel, copied to a temporary folder, compiled, and found through its metadata."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from safetensors.numpy import load_file

pytest.importorskip("torch", reason="torch is not installed")

EXAMPLE = Path(__file__).parents[3] / "docs/examples/xcfg-ckernel"
KNOB = "kernel.fast_math"

WATCH = """

import os
import time
from pathlib import Path

import numpy

_call = Bound.__call__


def _watched(self, logits, targets):
    found = _call(self, logits, targets)
    flushes = bool(numpy.float32(1e-40) * numpy.float32(0.5) == 0)
    path = Path(__file__).parents[1] / "seen" / f"{os.getpid()}-{time.monotonic_ns()}.npz"
    numpy.savez(path, logits=logits.numpy(), targets=targets.numpy(), logprobs=found.numpy(), flushes=flushes)
    return found


Bound.__call__ = _watched
"""
"""Appended to the copied backend: what the kernel was given and what it returned, by process."""


@frozen
class Bench:
    """A folder with the installed distribution, a checkpoint, tokens and output folders."""

    root: Path

    @property
    def builds(self) -> dict[bool, dict[str, Any]]:
        rows = json.loads((self.root / "xcfg_ckernel/builds.json").read_text())
        return {row["knobs"][KNOB]: row for row in rows}

    def library(self, fast: bool) -> Path:
        return self.root / "xcfg_ckernel" / self.builds[fast]["artifact"].partition(":")[2]

    def xcfg(self, command: str, *arguments: object, **changes: Any) -> tuple[int, dict[str, Any]]:
        content = {
            "name": "builds",
            "checkpoint": {"path": "model"},
            "rollout": {"scorer": "torch"},
            "training": {"scorer": "torch"},
            "tokens": {"recorded": "tokens.jsonl"},
            "axes": {KNOB: [False, True]},
            **changes,
        }
        exact = {"rollout.dtype": "float32", "training.compute_dtype": "float32", "rollout.scoring_path": "prefill"}
        content["baseline"] = {**exact, "logp.backend": "ckernel", KNOB: False, **changes.get("baseline", {})}
        path = self.root / "builds.json"
        path.write_text(json.dumps(content))
        line = [sys.executable, "-m", "xcfg.cli", command, path, *arguments, "--json"]
        done = subprocess.run([str(item) for item in line], capture_output=True, text=True, env=self.environment)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.root)}

    def copy(self, to: Path) -> "Bench":
        shutil.copytree(self.root, to, ignore=shutil.ignore_patterns("out"))
        return Bench(to)


def install(folder: Path) -> None:
    """What an installer does with the example's wheel, its build step run first with the machine's C compiler."""
    package = folder / "xcfg_ckernel"
    shutil.copytree(EXAMPLE / "src/xcfg_ckernel", package, ignore=shutil.ignore_patterns("__pycache__"))
    compiler = shutil.which("cc") or shutil.which("c++")
    assert compiler, "this machine has no C compiler"
    subprocess.run([sys.executable, EXAMPLE / "build.py", folder, compiler], check=True)
    with (package / "backend.py").open("a") as backend:
        backend.write(WATCH)
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = folder / "xcfg_ckernel-1.0.dist-info"
    info.mkdir()
    required = "".join(f"Requires-Dist: {line}\n" for line in project["dependencies"])
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n{required}")
    entries = "".join(f"{name} = {value}\n" for name, value in project["entry-points"]["xcfg"].items())
    (info / "entry_points.txt").write_text(f"[xcfg]\n{entries}")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    from xcfg_torch.testing.tiny_model import make_tiny_qwen3, ragged_batch

    root = tmp_path_factory.mktemp("ckernel")
    install(root)
    (root / "seen").mkdir()
    make_tiny_qwen3(root / "model")
    batch = ragged_batch()
    rows = zip(batch.ids, batch.prompts, batch.responses, strict=True)
    lines = [
        json.dumps({"id": name, "prompt_ids": prompt, "response_ids": response}) for name, prompt, response in rows
    ]
    (root / "tokens.jsonl").write_text("\n".join(lines) + "\n")
    return Bench(root)


@frozen
class Ran:
    """One sealed side run: the build it asked for and what is on disk of it."""

    fast: bool
    folder: Path
    launch: dict[str, Any]
    observed: dict[str, Any]

    @property
    def logprobs(self) -> np.ndarray:
        return load_file(self.folder / "samples.safetensors")["logprobs"]


@frozen
class Seen:
    """What the kernel of one process was given and returned: logits (N, V), targets (N,), logprobs (N,)."""

    logits: np.ndarray
    targets: np.ndarray
    logprobs: np.ndarray
    flushes: bool


@pytest.fixture(scope="module")
def document(bench: Bench) -> dict[str, Any]:
    code, found = bench.xcfg("run", "--out", bench.root / "out")
    assert code == 0, json.dumps(found, indent=1)[-4000:]
    return found


@pytest.fixture(scope="module")
def runs(bench: Bench, document: dict[str, Any]) -> list[Ran]:
    return list(sealed(bench.root / "out"))


def sealed(out: Path) -> Iterator[Ran]:
    for folder in sorted(out.glob("sides/*/attempt-0001")):
        requested = json.loads((folder / "requested.json").read_text())
        launch = json.loads((folder / "environment.json").read_text())["launch"]
        yield Ran(
            fast=requested["side"]["knobs"][KNOB],
            folder=folder,
            launch={"name": launch, **json.loads((out / "launches" / launch / "spec.json").read_text())},
            observed=json.loads((folder / "observed.json").read_text()),
        )


@pytest.fixture(scope="module")
def seen(bench: Bench, document: dict[str, Any]) -> dict[str, Seen]:
    """By process id."""
    parts: dict[str, list[Any]] = {}
    for path in sorted((bench.root / "seen").iterdir(), key=lambda path: int(path.stem.partition("-")[2])):
        parts.setdefault(path.stem.partition("-")[0], []).append(dict(np.load(path)))
    return {
        process: Seen(
            *(np.concatenate([part[name] for part in calls]) for name in ("logits", "targets", "logprobs")),
            flushes=any(bool(part["flushes"]) for part in calls),
        )
        for process, calls in parts.items()
    }

"""The Python of pages on results, on a run of fakes of the name that the page has."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import xarray

from .bench import Bench
from .fragments import complete

AXES = """
baseline: {rollout.dtype: bfloat16, training.compute_dtype: bfloat16, batch.size: 16}
axes: {batch.size: [16, 8], rollout.scoring_path: [forced_decode, prefill]}
"""
"""Settings of a request alone, so that one engine a side scores every case."""
FAKES = {"rollout": {"scorer": "fake"}, "training": {"scorer": "fake"}}


def executed(bench: Bench, name: str) -> dict[str, float]:
    """The run in ``runs/NAME`` of the folder the process is in; by case the largest difference."""
    folder, values = _run()
    shutil.copytree(Path(folder.name) / "out", bench.here / "runs" / name)
    return values


@cache
def _run() -> tuple[TemporaryDirectory[str], dict[str, float]]:
    """One run, kept as long as its folder is held."""
    folder = TemporaryDirectory()
    experiment = complete(AXES, Path(folder.name), **FAKES)
    command = [sys.executable, "-m", "xcfg.cli", "-q", "run", experiment, "--allow-fake", "--json"]
    done = subprocess.run([*command, "--out", f"{folder.name}/out"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return folder, {case["id"]: case["metrics"]["max_abs_dlogp"] for case in json.loads(done.stdout)["cases"]}


def opened(cube: xarray.Dataset, expected: dict[str, float]) -> None:
    """The cube that the page opens is that of the run."""
    values = cube["metrics"].sel(metric="max_abs_dlogp").values
    assert sorted(values[cube["status"].values != 0].tolist()) == sorted(expected.values())


def read_the_cube(bench: Bench) -> None:
    expected = executed(bench, "qwen3-tiny-tp2-fsdp")
    while bench.left:
        bench.run()
    opened(bench.names["cube"], expected)


def keep_and_share(bench: Bench) -> None:
    """The store of the page is S3's; a folder that the same library opens takes its place."""
    expected = executed(bench, "mine")
    folder = Path("runs/mine").resolve().as_uri()
    opened(bench.run(replaced=("s3://results/runs/mine", folder))["cube"], expected)

"""The same plan in other processes and on another Python."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

AXES = {
    "rollout.dtype": ["bf16", "fp32", "fp16"],
    "batch.size": [8, 1, 2, 64],
    "sampling.temperature": [1.0, 0.1, 1e-2],
    "layout.padding_side": ["right", "left"],
    "training.sharding": ["full_shard", "hybrid"],
    "execution.prefix_cache": [False, True],
}
LINKED = {"both": {"training.compute_dtype": ["fp32", "fp16"], "rollout.tensor_parallel_size": [2, 4]}}

SCRIPT = """
import json, sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
spec = spec_from_file_location("bench", sys.argv[1])
bench = module_from_spec(spec)
spec.loader.exec_module(bench)
from xcfg.model.experiment import Mode
from xcfg.planner.build import build_plan
from xcfg.planner.load import load_experiment
catalog = bench.MemoryCatalog()
loaded = load_experiment(Path(sys.argv[2]), registry=catalog)
plans = {
    mode: build_plan(loaded.experiment, root=loaded.root, registry=catalog, mode=Mode(mode), max_cases=10**6)
    for mode in ("one_at_a_time", "two_at_a_time", "pairwise", "product")
}
print(json.dumps({mode: [case.id for case in plan.cases] for mode, plan in plans.items()}))
"""


def ids(python: str, experiment: Path, seed: str, *paths: str) -> dict[str, list[str]]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(paths)}
    command = [python, "-c", SCRIPT, str(Path(__file__).with_name("conftest.py")), str(experiment)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def shuffled(data: Any, chance: random.Random) -> Any:
    if not isinstance(data, dict):
        return data
    keys = list(data)
    chance.shuffle(keys)
    return {key: shuffled(data[key], chance) for key in keys}


@pytest.fixture
def experiment(bench: Any) -> Path:
    path: Path = bench.write(bench.minimal(axes=AXES, linked=LINKED))
    return path


def test_processes_with_other_hashes_and_other_key_orders_agree(bench: Any, experiment: Path) -> None:
    first = ids(sys.executable, experiment, "1")
    assert ids(sys.executable, experiment, "2") == first
    mixed = bench.write(shuffled(json.loads(experiment.read_text()), random.Random(3)), "mixed.json")
    other = ids(sys.executable, mixed, "3")
    assert {mode: sorted(found) for mode, found in other.items()} == {
        mode: sorted(found) for mode, found in first.items()
    }
    assert len(first["product"]) == len(set(first["product"])) == 1 + 3 * 4 * 3 * 2 * 2 * 2 * 2


def others() -> list[Path]:
    """Interpreters of other minor versions that pyenv has installed."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    here = f"{sys.version_info.major}.{sys.version_info.minor}."
    found = sorted(path for path in root.glob("3.1[1-9].*/bin/python") if not path.parts[-3].startswith(here))
    return found


def test_another_python_agrees(experiment: Path) -> None:
    """It gets this environment's pure Python packages; one that cannot import them is passed over."""
    site = str(Path(str(metadata.distribution("attrs").locate_file(""))).resolve())
    source = str(Path(__file__).parents[2] / "src")
    needed = "import attrs, cattrs, pytest, rfc8785, ruamel.yaml"
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join((source, site))}
    able = [
        path
        for path in others()
        if subprocess.run([path, "-c", needed], env=paths, capture_output=True, check=False).returncode == 0
    ]
    if not able:
        pytest.skip("no other Python that can import the packages")
    first = ids(sys.executable, experiment, "0")
    for path in able:
        assert ids(str(path), experiment, "0", source, site) == first

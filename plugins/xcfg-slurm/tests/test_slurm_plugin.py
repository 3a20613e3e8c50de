"""Descriptor, options, and what is asked of submitit."""

from __future__ import annotations

import subprocess
import sys

import pytest

from xcfg.errors import EnvironmentFault, InvalidInput
from xcfg.model.scorer import Launch
from xcfg.plugin.executor import Job, Limits
from xcfg.testing.plugin_tests import PluginTests
from xcfg_slurm.executor import SlurmExecutor
from xcfg_slurm.options import OPTIONS, SlurmOptions, read_options
from xcfg_slurm.submitting import parameters


class TestSlurmPlugin(PluginTests):
    name = "slurm"
    distribution = "xcfg-slurm"
    engines = ("submitit", "torch", "numpy")


def test_options() -> None:
    assert read_options({}) == SlurmOptions()
    found = read_options({"partition": "gpu", "time": "30", "gpus_per_rank": "2", "memory_per_rank": "1.5"})
    assert (found.partition, found.time, found.gpus_per_rank, found.memory_per_rank) == ("gpu", 30, 2, 1.5)
    assert found.gpus_per_engine == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"queue": "x"}, "no option queue"),
        ({"time": "0"}, "time must be a whole number of at least 1"),
        ({"cpus_per_rank": "1.5"}, "cpus_per_rank must be a whole number"),
        ({"jobs": "many"}, "jobs must be a number"),
        ({"cluster": "debug"}, "cluster debug"),
    ],
)
def test_wrong_options(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_options(given)


def test_every_option_is_described() -> None:
    for name in OPTIONS:
        read_options({name: {"cluster": "local"}.get(name, "1")})


def job(launch: Launch, ranks: int) -> Job:
    limits = Limits(start=1, score=1, stop=1)
    return Job(folder="launches/0003", inputs=(), launch=launch, ranks=ranks, limits=limits)


def test_ranks_share_the_node_unless_told_otherwise() -> None:
    given = {
        "cpus_per_rank": "3",
        "gpus_per_rank": "1",
        "gpus_per_engine": "2",
        "memory_per_rank": "4",
        "account": "me",
    }
    whole = parameters(job(Launch.ELASTIC, 4), read_options(given))
    assert (whole["nodes"], whole["cpus_per_task"], whole["gpus_per_node"], whole["mem_gb"]) == (1, 12, 4, 16)
    apart = parameters(job(Launch.ELASTIC, 4), read_options({**given, "ranks_per_node": "2"}))
    assert (apart["nodes"], apart["cpus_per_task"], apart["gpus_per_node"], apart["mem_gb"]) == (2, 6, 2, 8)
    single = parameters(job(Launch.SINGLE, 1), read_options({**given, "ranks_per_node": "2"}))
    assert (single["nodes"], single["cpus_per_task"], single["gpus_per_node"], single["mem_gb"]) == (1, 3, 2, 4)
    assert single["slurm_account"] == "me" and "slurm_partition" not in single


def test_ranks_that_cannot_be_shared_out_are_refused() -> None:
    with pytest.raises(EnvironmentFault, match="ranks_per_node=2 does not divide 3 ranks"):
        parameters(job(Launch.ELASTIC, 3), read_options({"ranks_per_node": "2"}))


def test_without_submitit_the_pip_line_is_given() -> None:
    program = (
        "import sys\nsys.modules['submitit'] = None\n"
        "from xcfg.errors import EnvironmentFault\nfrom xcfg_slurm.executor import SlurmExecutor\n"
        "try:\n    SlurmExecutor({})\nexcept EnvironmentFault as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == '--executor slurm: submitit is not installed (pip install "xcfg-slurm[engine]")\n'


def test_without_slurm_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentFault, match="sbatch and srun are not on the path"):
        SlurmExecutor({})

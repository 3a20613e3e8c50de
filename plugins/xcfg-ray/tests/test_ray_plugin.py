"""Descriptor, options and requests."""

from __future__ import annotations

import subprocess
import sys

import pytest
from attrs import evolve

from xcfg.errors import InvalidInput
from xcfg.model.scorer import Launch
from xcfg.plugin.executor import Job, Limits
from xcfg.plugin.installed import Installed
from xcfg.testing.plugin_tests import PluginTests
from xcfg_ray.likeness import unlike
from xcfg_ray.options import OPTIONS, RayOptions, read_options
from xcfg_ray.resources import Request, holds, request_of

NODES = [{"CPU": 4.0, "GPU": 1.0, "memory": 8e9}, {"CPU": 2.0, "memory": 8e9}]


class TestRayPlugin(PluginTests):
    name = "ray"
    distribution = "xcfg-ray"
    engines = ("ray", "torch", "numpy")


def test_options() -> None:
    assert read_options({}) == RayOptions()
    texts = {"address": "head:6379", "cpus_per_rank": "2", "gpus_per_rank": "0.5", "memory_per_rank": "1.5"}
    found = read_options({**texts, "strategy": "spread", "wait": "5"})
    assert (found.address, found.cpus_per_rank, found.gpus_per_rank, found.memory) == ("head:6379", 2, 0.5, 1610612736)
    assert (found.gpus_per_engine, found.strategy, found.wait) == (0.5, "SPREAD", 5)
    assert read_options({"gpus_per_rank": "1", "gpus_per_engine": "4"}).gpus_per_engine == 4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"adress": "x"}, "no option adress"),
        ({"cpus_per_rank": "two"}, "cpus_per_rank must be a number"),
        ({"gpus_per_rank": "-1"}, "gpus_per_rank must be a number"),
        ({"wait": "inf"}, "wait must be a number"),
        ({"strategy": "near"}, "strategy near"),
    ],
)
def test_wrong_options(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_options(given)


def test_every_option_is_described() -> None:
    for name in OPTIONS:
        read_options({name: {"strategy": "PACK"}.get(name, "1")})


@pytest.mark.parametrize(
    ("machines", "bundle", "strategy", "fits"),
    [
        (1, {"CPU": 4}, "PACK", True),
        (1, {"CPU": 5}, "PACK", False),  # six in all, but no node has five
        (3, {"CPU": 2}, "PACK", True),  # two and one
        (4, {"CPU": 2}, "PACK", False),
        (2, {"CPU": 2}, "STRICT_PACK", True),
        (3, {"CPU": 2}, "STRICT_PACK", False),
        (2, {"CPU": 2}, "STRICT_SPREAD", True),
        (3, {"CPU": 1}, "STRICT_SPREAD", False),
        (2, {"CPU": 1, "GPU": 1}, "SPREAD", False),
    ],
)
def test_what_fits(machines: int, bundle: dict[str, float], strategy: str, fits: bool) -> None:
    assert Request(machines=machines, bundle=bundle, strategy=strategy).fits(NODES) is fits


def test_a_request_of_nothing_counts_the_cpus() -> None:
    assert [holds(node, {}) for node in NODES] == [4, 2]


def test_an_elastic_launch_takes_a_machine_a_rank() -> None:
    options = read_options({"gpus_per_rank": "1", "gpus_per_engine": "2"})
    limits = Limits(start=1, score=1, stop=1)
    elastic = Job(folder="x", inputs=(), launch=Launch.ELASTIC, ranks=3, limits=limits)
    single = Job(folder="x", inputs=(), launch=Launch.SINGLE, ranks=1, limits=limits)
    assert (request_of(elastic, options).machines, request_of(elastic, options).bundle) == (3, {"CPU": 1, "GPU": 1})
    assert (request_of(single, options).machines, request_of(single, options).bundle) == (1, {"CPU": 1, "GPU": 2})


def test_without_ray_the_pip_line_is_given() -> None:
    program = (
        "import sys\nsys.modules['ray'] = None\n"
        "from xcfg.errors import EnvironmentFault\nfrom xcfg_ray.executor import RayExecutor\n"
        "try:\n    RayExecutor({})\nexcept EnvironmentFault as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == '--executor ray: ray is not installed (pip install "xcfg-ray[engine]")\n'


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({}, ""),
        ({"python": "3.12.1"}, "Python is 3.12.1 there, 3.11.7 here"),
        ({"machine": "aarch64"}, "the processor is aarch64 there, x86_64 here"),
        ({"distributions": {"xcfg": "0.2"}}, "xcfg is 0.2 there, 0.1 here"),
        ({"distributions": {"xcfg": ""}}, "xcfg is not installed there, 0.1 here"),
        ({"engine": {"torch": "torch 2.6"}}, "torch is torch 2.6 there, torch 2.13 here"),
        ({"code": {"xcfg": "ef"}}, "the source of xcfg is another one"),
    ],
)
def test_a_machine_with_other_code_is_named(
    monkeypatch: pytest.MonkeyPatch, other: dict[str, object], words: str
) -> None:
    here = Installed(
        python="3.11.7",
        machine="x86_64",
        distributions={"xcfg": "0.1"},
        engine={"torch": "torch 2.13"},
        code={"xcfg": "ab"},
    )
    monkeypatch.setattr("xcfg_ray.likeness.installed", lambda asked, python: here)
    limits = Limits(start=1, score=1, stop=1)
    job = Job(folder="x", inputs=(), launch=Launch.SINGLE, ranks=1, limits=limits)
    assert unlike(job, evolve(here, **other)) == words

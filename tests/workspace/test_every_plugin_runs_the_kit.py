"""Whatever our distributions register, a class of the conformance kit tests, among the distribution's own tests.

What counts is what pytest collects (:mod:`kit_classes`), not what a file says.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from xcfg import testing
from xcfg.model.executor import ExecutorDescriptor
from xcfg.model.importer import ImporterDescriptor
from xcfg.model.knob import Knob
from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, ScorerDescriptor
from xcfg.plugin.inventory import inventory
from xcfg.plugin.manager import load_plugins, new_manager

ROOT = Path(__file__).parents[2]
FOLDERS = {"xcfg": ROOT / "core"} | {
    folder.name: folder for place in ("plugins", "kernels") for folder in (ROOT / place).iterdir()
}
KEYS = {
    Knob: ("KnobTests", lambda item: (item.name,)),
    ScorerDescriptor: ("ScorerTests", lambda item: (item.target,)),
    MaterializerDescriptor: ("MaterializerTests", lambda item: (item.scorer, item.knob)),
    KernelBackendDescriptor: ("KernelBackendTests", lambda item: (item.operator, item.id)),
    ImporterDescriptor: ("ImporterTests", lambda item: (item.id,)),
    ExecutorDescriptor: ("ExecutorTests", lambda item: (item.id,)),
}
"""Kind of descriptor to the class that tests it, and to its key there."""

RUN_BY_A_TEST = {
    "kernels/xcfg-te/tests/te_kit.py": "Triton's interpreter has to be chosen before anything imports Triton",
}
"""Files of the kit that pytest does not collect by itself, and why a test has to run them in another process."""
EXCEPTIONS: dict[tuple[str, ...], str] = {}
"""What no class tests, with the reason: kind and key."""


def wanted() -> dict[tuple[str, ...], str]:
    """Kind and key of whatever is registered to the distribution's name.

    Left out are fakes, which are for tests, and materializers that no code of a scorer is behind.
    """
    found = {}
    for loaded in load_plugins([info for info in inventory() if info.distribution in FOLDERS], new_manager()):
        found["PluginTests", loaded.info.distribution] = loaded.info.distribution
        registered = [item for _, item in loaded.contribution.items() if not getattr(item, "fake", False)]
        fakes = {item.id for _, item in loaded.contribution.items() if getattr(item, "fake", False)}
        for item in registered:
            kind, key = KEYS.get(type(item), ("", None))
            hosted = isinstance(item, MaterializerDescriptor) and (not item.target or item.scorer in fakes)
            if key is not None and not hosted:
                found[kind, *key(item)] = loaded.info.distribution
    return found


WANTED = wanted()


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """Every class of the kit that is collected from the tests of our distributions."""
    out = tmp_path_factory.mktemp("kit") / "found.json"
    named = re.compile(r"\b(OnOneRank|" + "|".join(testing.__all__) + r")\b")
    tests = [path for folder in FOLDERS.values() for path in (folder / "tests").rglob("test_*.py")]
    files = [path for path in [*tests, *(ROOT / name for name in RUN_BY_A_TEST)] if named.search(path.read_text())]
    command = [sys.executable, str(Path(__file__).with_name("kit_classes.py")), str(out), *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found: list[dict] = json.loads(out.read_text())
    return found


@pytest.fixture(scope="module")
def tested(classes: list[dict]) -> dict[tuple[str, ...], set[str]]:
    """Kind and key to the distributions whose tests have a class for it."""
    found: dict[tuple[str, ...], set[str]] = {}
    for item in classes:
        for name, folder in FOLDERS.items():
            if Path(item["file"]).is_relative_to(folder / "tests"):
                found.setdefault((item["kind"], *item["key"]), set()).add(name)
    return found


def _absent(distribution: str) -> list[str]:
    """What the distribution's own tests cannot do without and this environment does not have."""
    folder = FOLDERS[distribution]
    needs = {"xcfg-vllm": ("vllm",), "xcfg-ray": ("ray",), "xcfg-slurm": ("submitit",)}
    needs |= {"xcfg-deepspeed": ("deepspeed", "torch"), "xcfg-megatron": ("megatron", "torch")}
    return [name for name in needs.get(folder.name, ("torch",) if folder.name != "xcfg" else ()) if not find_spec(name)]


@pytest.mark.parametrize("what", sorted(WANTED), ids="-".join)
def test_it_runs_the_kit(what, tested) -> None:
    distribution = WANTED[what]
    if absent := _absent(distribution):
        pytest.skip(f"{', '.join(absent)} is not installed")
    if what not in EXCEPTIONS:
        assert distribution in tested.get(what, ()), f"the tests of {distribution} have no {what[0]} for {what[1:]}"


def test_no_exception_is_stale(tested) -> None:
    for what, reason in EXCEPTIONS.items():
        assert what in WANTED, f"nothing is registered as {what}"
        assert WANTED[what] not in tested.get(what, ()), f"{what} is tested"
        assert len(reason.split()) > 3


@pytest.mark.parametrize("name", RUN_BY_A_TEST)
def test_what_is_not_collected_is_run_by_a_test(name) -> None:
    path = ROOT / name
    assert not path.name.startswith("test_")
    assert any(path.name in test.read_text() for test in path.parent.glob("test_*.py"))
    assert len(RUN_BY_A_TEST[name].split()) > 3


def test_every_kind_of_descriptor_is_there() -> None:
    """The table above reaches what the distributions register: no kind is passed over by a change of types."""
    assert {kind for kind, *_ in WANTED} == {"PluginTests"} | {kind for kind, _ in KEYS.values()}
    assert set(WANTED.values()) == set(FOLDERS)

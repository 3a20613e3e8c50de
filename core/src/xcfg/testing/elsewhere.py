"""A grid on gated fakes, run through any executor in this process: for tests of executors."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import pytest
from attrs import evolve, field, frozen

from xcfg.cli.commit import commit_run
from xcfg.cli.executing import judged
from xcfg.model.case import SideConfig
from xcfg.model.scorer import Launch, MaterializerDescriptor, ScorerDescriptor
from xcfg.planner.build import build_plan
from xcfg.planner.load import load_experiment
from xcfg.plugin.executor import Executor
from xcfg.plugin.registry import Registry, load_registry
from xcfg.runner.execute import execute
from xcfg.runner.options import RunOptions
from xcfg.runner.report import RunReport
from xcfg.testing.gated import GO, MARKS, VARIABLES

GRID: Mapping[str, Any] = MappingProxyType(
    {
        "rollout.dtype": ["bfloat16", "float32"],
        "rollout.scoring_path": ["forced_decode", "prefill"],
        "training.compute_dtype": ["bfloat16", "float32"],
        "batch.micro_size": [None, 2],
    }
)
"""16 cases of 4 engines, each with 2 side runs."""


class GatedRegistry(Registry):
    """The fakes alone: ``fake`` is gated, ``testing.fake`` is launched on as many ranks as it is told.

    ``targets`` are classes of ``xcfg.testing.gated``, or whole import strings.
    """

    targets: Mapping[str, str] = MappingProxyType({"fake": "Gated", "testing.fake": "Shared"})

    def scorer(self, id: str) -> ScorerDescriptor:
        """The descriptor with another class behind it."""
        target = self.targets[id]
        found = evolve(super().scorer(id), target=target if ":" in target else f"xcfg.testing.gated:{target}")
        if id == "testing.fake":
            return evolve(found, launch=Launch.ELASTIC, world_size_knob="training.world_size")
        return found

    def process_environment(self, side: SideConfig) -> dict[str, str]:
        """Also those that the gated scorer looks for."""
        return {**super().process_environment(side), **VARIABLES}

    def materializer(self, knob: str, scorer: str) -> MaterializerDescriptor | None:
        """Any number of ranks is supported."""
        found = super().materializer(knob, scorer)
        return evolve(found, values=()) if found and knob == "training.world_size" else found

    def materializers(self, scorer: str) -> Mapping[str, MaterializerDescriptor]:
        """As :meth:`materializer` gives them."""
        every = {name: self.materializer(name, scorer) for name in super().materializers(scorer)}
        return MappingProxyType({name: item for name, item in every.items() if item is not None})


@frozen(kw_only=True)
class ExecutorWorld:
    """An experiment in ``root``: checkpoint, tokens, and a home folder that marks the processes started from here."""

    root: Path
    registry: Registry = field(repr=False)

    @property
    def home(self) -> Path:
        """Where the gate is."""
        return self.root / "home"

    def marks(self) -> list[int]:
        """The processes that wait at the gate, or did."""
        return [int(path.name) for path in (self.home / MARKS).iterdir()]

    def go(self) -> None:
        """Let every scorer score."""
        (self.home / GO).touch()

    def shut(self) -> None:
        """Let every scorer wait at its second side run."""
        (self.home / GO).unlink(missing_ok=True)
        for path in (self.home / MARKS).iterdir():
            path.unlink()

    def left(self) -> list[str]:
        """What is still there of any launch: processes, and folders among the temporary ones."""
        found = [str(path) for path in (self.root / "tmp").glob("xcfg-*")]
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                words = " ".join(process.cmdline())
                if "xcfg" in words and process.pid != os.getpid() and process.environ().get("HOME") == str(self.home):
                    found.append(words)
        return found

    def run(
        self,
        out: Path,
        executor: Executor | None = None,
        *,
        axes: Mapping[str, Any] = MappingProxyType({}),
        baseline: Mapping[str, Any] = MappingProxyType({}),
        training: str = "fake",
        on_event: Callable[[Any], None] = lambda event: None,
        **options: Any,
    ) -> RunReport:
        """Execute the product of the axes into the folder ``out`` and write its cube."""
        content = {
            "schema": "xcfg.experiment/1",
            "name": "elsewhere",
            "checkpoint": {"path": "model"},
            "rollout": {"scorer": "fake"},
            "training": {"scorer": training},
            "tokens": {"recorded": "tokens.jsonl"},
            "baseline": {"rollout.dtype": "bfloat16", "training.compute_dtype": "bfloat16", **baseline},
            "mode": "product",
            "axes": dict(axes),
        }
        path = self.root / "experiment.json"
        path.write_text(json.dumps(content))
        loaded = load_experiment(path, (), registry=self.registry)
        plan = build_plan(loaded.experiment, root=loaded.root, registry=self.registry)
        report = execute(plan, self.registry, out, RunOptions(**options), on_event=on_event, executor=executor)
        commit_run(out, report, judged(plan, report, self.registry), self.registry)
        return report


@contextmanager
def executor_world(root: Path) -> Iterator[ExecutorWorld]:
    """The experiment in the empty folder ``root``, its gate open, with the environment that processes inherit."""
    for name in ("model", "tmp", f"home/{MARKS}"):
        (root / name).mkdir(parents=True)
    (root / "model/config.json").write_text(json.dumps({"vocab_size": 17}))
    (root / "model/tokenizer.json").write_text("{}")
    rows = [{"id": f"s{row}", "prompt_ids": [1, 2 + row], "response_ids": [3, 4 + row, 5]} for row in range(4)]
    (root / "tokens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    loaded = load_registry(plugins=False, allow_fake=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root / "home"))
        patch.setenv("TMPDIR", str(root / "tmp"))
        world = ExecutorWorld(root=root, registry=GatedRegistry(loaded.loaded, allow_fake=True))
        world.go()
        yield world


def until(found: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something. Raises AssertionError where it does not happen in ``seconds``."""
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def endings(out: Path) -> list[str]:
    """How each launch of a folder ended, in the order in which they were launched."""
    return [json.loads(path.read_text())["ending"] for path in sorted(out.glob("launches/*/exit.json"))]

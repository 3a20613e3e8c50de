"""A folder with an experiment on fakes, and ``xcfg`` called there as a process of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from attrs import field, frozen

from xcfg.testing.distributions import write_distribution

MODULES = Path(__file__).parent / "modules"
GONE_S = 30.0
"""Longest wait for processes to be gone: the guard gives them 3 s to tidy up before it kills."""
OTHERS = "torch,fsdp,vllm,kernels,ray"
"""Plugins that have no part in this and only take time to load."""

EXPERIMENT: dict[str, Any] = {
    "schema": "xcfg.experiment/1",
    "name": "faults",
    "checkpoint": {"path": "model", "weight_version": "step-7"},
    "rollout": {"scorer": "fake"},
    "training": {"scorer": "fake"},
    "tokens": {"recorded": "tokens.jsonl"},
    "baseline": {"rollout.dtype": "bfloat16", "training.compute_dtype": "bfloat16"},
}


@frozen
class Done:
    """How a command ended. ``code`` is negative where a signal ended it."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out) if self.out.strip() else {}

    @property
    def message(self) -> str:
        """What was said to be wrong: reasons of cases, errors, refused attempts; where no document is, all words."""
        found = self.document.get("cases", [])
        cases = [item["reason"] for item in found] if isinstance(found, list) else []
        errors = [" ".join((item["where"], item["message"])) for item in self.document.get("errors", [])]
        refused = [line for line in self.err.splitlines() if "refused attempt" in line]
        words = [] if self.document else [self.err]
        return " | ".join(filter(None, (*dict.fromkeys(cases), *errors, *refused, *words)))


@frozen
class Running:
    """A command in the background and what it has printed."""

    process: subprocess.Popen[bytes]
    out: IO[str]
    err: IO[str]


@frozen
class Place:
    """``root`` holds experiment, model, tokens, and ``home``, which marks the processes started from here."""

    root: Path
    extra: dict[str, str] = field(factory=dict)

    @classmethod
    def make(cls, root: Path) -> "Place":
        (root / "model").mkdir(parents=True)
        (root / "home").mkdir()
        (root / "model/config.json").write_text('{"vocab_size": 64}')
        (root / "model/tokenizer.json").write_text("{}")
        rows = [
            {"id": "a", "prompt_ids": [1, 2], "response_ids": [3, 4, 5], "mask": [True, False, True]},
            {"id": "b", "prompt_ids": [6], "response_ids": [7, 8]},
        ]
        (root / "tokens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        write_distribution(root / "site", "xcfg-faults", (MODULES / "plugin.py").read_text())
        return cls(root)

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def home(self) -> Path:
        return self.root / "home"

    def write(self, training: str = "fake", /, **fields: Any) -> Path:
        """The experiment with this training scorer; further fields replace those of the template."""
        path = self.root / "experiment.json"
        path.write_text(json.dumps({**EXPERIMENT, "training": {"scorer": training}, **fields}))
        return path

    def command(self, *options: object) -> list[str]:
        arguments = ("run", "experiment.json", "--allow-fake", "--out", "out", "--json", *options)
        return [sys.executable, "-m", "xcfg.cli", *map(str, arguments)]

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("XCFG_")}
        paths = [str(MODULES), str(self.root / "site"), kept.get("PYTHONPATH", "")]
        found = {**kept, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "HOME": str(self.home)}
        return {**found, "XCFG_DISABLE_PLUGINS": OTHERS, **self.extra}

    def start(self, *options: object) -> Running:
        """``xcfg run`` in the background."""
        return self.popen(self.command(*options))

    def popen(self, command: list[str]) -> Running:
        # not pipes: one that nobody reads would hold the run up
        streams = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        started = subprocess.Popen(command, cwd=self.root, env=self.environment, stdout=streams[0], stderr=streams[1])
        return Running(started, *streams)

    def run(self, *options: object) -> Done:
        return self.call(self.command(*options))

    def xcfg(self, *arguments: object) -> Done:
        """Another command of ``xcfg``."""
        return self.call([sys.executable, "-m", "xcfg.cli", *map(str, arguments)])

    def call(self, command: list[str]) -> Done:
        return self.wait(self.popen(command))

    @staticmethod
    def wait(running: Running) -> Done:
        running.process.wait(timeout=3000)
        text = []
        for stream in (running.out, running.err):
            stream.seek(0)
            text.append(stream.read())
            stream.close()
        return Done(running.process.returncode, *text)

    def until(self, happened: Callable[[], object], running: Running) -> None:
        """Wait for something that ``running`` does; fail with its words where it ended without."""
        deadline = time.monotonic() + 120
        while not happened():
            if running.process.poll() is not None:
                raise AssertionError(f"the run ended before: {self.wait(running)}")
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.02)

    def kill(self, running: Running) -> None:
        """SIGKILL to ``running``, and wait until nothing of its launches is left."""
        running.process.send_signal(signal.SIGKILL)
        self.wait(running)
        assert self.left() == []

    def attempts(self, out: Path | None = None) -> dict[str, list[str]]:
        """By side, the attempts in their order: ``sealed``, ``failed`` or ``cut off``."""
        sides = sorted(((out or self.out) / "sides").glob("*"))
        return {side.name: [_state(path) for path in sorted(side.glob("attempt-*"))] for side in sides}

    def kept(self) -> str:
        """What the folder holds of attempts, as a phrase."""
        states = [state for side in self.attempts().values() for state in side]
        counts = [f"{states.count(kind)} {kind}" for kind in ("sealed", "failed", "cut off") if kind in states]
        return ", ".join(counts) or "nothing"

    def left(self) -> list[str]:
        """Command lines of the launches' processes that were started from here and do not end."""
        deadline = time.monotonic() + GONE_S
        while (found := launched(self.home)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return [line for _, line in found]


def _state(attempt: Path) -> str:
    if (attempt / "COMPLETE").is_file():
        return "sealed"
    return "failed" if (attempt / "failure.json").is_file() else "cut off"


def launched(home: Path) -> list[tuple[int, str]]:
    """Living processes that carry a launch's mark and this home: pid and command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            if f"HOME={home}".encode() in variables and any(item.startswith(b"XCFG_LAUNCH=") for item in variables):
                found.append((int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
        except OSError:
            continue  # it has ended, or belongs to another user
    return found

"""Scorers that misbehave as real engines do, for the runner's tests. Loaded in child processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from attrs import evolve

from xcfg.errors import UnsupportedError
from xcfg.model.capability import Supported, Unsupported
from xcfg.testing.fakes import FakeScorer
from xcfg.testing.materialize import RequestMaterializer

SLEEP = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(300)
"""
FORK = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}], start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid)
"""


def _note(pid: int) -> None:
    folder = Path(os.environ["HOME"]) / "pids"
    folder.mkdir(exist_ok=True)
    (folder / str(pid)).touch()


class Daemons(FakeScorer):
    """Leaves a process in a session of its own that ignores SIGTERM, started by one that has already ended."""

    def open(self, spec):
        super().open(spec)
        done = subprocess.run([sys.executable, "-c", FORK], stdout=subprocess.PIPE, start_new_session=True, check=True)
        _note(int(done.stdout))
        _note(os.getpid())


class DaemonsThenHang(Daemons):
    """Also never returns from scoring."""

    def score(self, batch, request):
        threading.Event().wait()


class HangsAtOpen(FakeScorer):
    """Its engine is never built."""

    def open(self, spec):
        threading.Event().wait()


class HangsAtClose(FakeScorer):
    """Scores and never closes."""

    def close(self):
        threading.Event().wait()


class SlowSecond(FakeScorer):
    """Scores a batch size of 2 at once and every other one for ever."""

    def open(self, spec):
        super().open(spec)
        _note(os.getpid())

    def score(self, batch, request):
        if request.settings.get("batch.size") != 2:
            (Path(os.environ["HOME"]) / "hanging").touch()
            threading.Event().wait()
        return super().score(batch, request)


class CrashSecond(FakeScorer):
    """Raises for a batch size of 4."""

    def score(self, batch, request):
        if request.settings.get("batch.size") == 4:
            raise RuntimeError("no such batch")
        return super().score(batch, request)


class Flaky(FakeScorer):
    """Cannot be built the first time."""

    def open(self, spec):
        mark = Path(os.environ["HOME"]) / "tried"
        if not mark.exists():
            mark.touch()
            raise RuntimeError("not this time")
        super().open(spec)


class AbortsAtExit(FakeScorer):
    """Crashes when everything is on disk."""

    def close(self):
        if self.live is not None:
            os.kill(os.getpid(), signal.SIGABRT)


class WrongWeights(FakeScorer):
    """Loaded another file than it was told to."""

    def identity(self):
        return evolve(super().identity(), checkpoint_digest="0" * 64)


class NoMemory(FakeScorer):
    """Runs out of memory while it is built."""

    def open(self, spec):
        raise RuntimeError("engine core failed") from MemoryError("cannot allocate 1 GiB")


class Choosy(RequestMaterializer):
    """Supports no batch size of 4."""

    def probe(self, knob, value, spec):
        return Unsupported("four is too many") if value == 4 else Supported()


class NoSampler(FakeScorer):
    """Cannot sample."""

    def sample(self, prompts, source):
        raise UnsupportedError("this engine does not sample")


class Jitter(FakeScorer):
    """Each scoring adds one unit of 2**-10 nats to the first token."""

    calls = 0

    def score(self, batch, request):
        scored = super().score(batch, request)
        logprobs = scored.samples.logprobs.copy()
        logprobs[0] = -1.0 - self.calls * 2.0**-10
        self.calls += 1
        return evolve(scored, samples=evolve(scored.samples, logprobs=logprobs))


class Environment(FakeScorer):
    """Records its environment and its interpreter."""

    def identity(self):
        return evolve(super().identity(), recorded={"environment": dict(os.environ), "python": sys.executable})


class Elastic(FakeScorer):
    """Two ranks that share the rows between them; no collective is needed."""

    def score(self, batch, request):
        from xcfg.testing.reshape import keep_rows

        scored = super().score(batch, request)
        rows = range(self._spec.rank, scored.samples.rows, self._spec.world_size)
        return evolve(scored, samples=keep_rows(scored.samples, rows))


class ElasticLost(Elastic):
    """Rank 1 is killed while it scores."""

    def score(self, batch, request):
        if self._spec.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.2)
        return super().score(batch, request)


class BigSampler(FakeScorer):
    """Fills a file when it is built, as an engine that caches on disk would."""

    def open(self, spec):
        (Path(os.environ["HOME"]) / "cache").write_bytes(b"0" * (8 << 20))
        super().open(spec)

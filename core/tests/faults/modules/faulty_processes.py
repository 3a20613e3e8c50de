"""Scorers whose process ends, hangs or leaves something behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from xcfg.testing.fakes import FakeScorer

FLOOD = 16 << 20
"""Bytes of log, beyond any buffer in between."""

SLEEPS = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""
FORKS = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {SLEEPS!r}], start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
"""


def _for_ever():
    threading.Event().wait()


def _mark(name):
    (Path(os.environ["HOME"]) / name).touch()


class ExitsInOpen(FakeScorer):
    def open(self, spec):
        os._exit(1)


class KilledInOpen(FakeScorer):
    def open(self, spec):
        os.kill(os.getpid(), signal.SIGKILL)


class ExitsInScore(FakeScorer):
    def score(self, batch, request):
        os._exit(1)


class LeavesInScore(FakeScorer):
    """Ends as if all were well."""

    def score(self, batch, request):
        os._exit(0)


class HangsInOpen(FakeScorer):
    def open(self, spec):
        _for_ever()


class HangsInScore(FakeScorer):
    def score(self, batch, request):
        _for_ever()


class HangsInClose(FakeScorer):
    def close(self):
        _for_ever()


class Stubborn(FakeScorer):
    """Hears no SIGTERM and never returns."""

    def score(self, batch, request):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _for_ever()


class Daemon(FakeScorer):
    """Leaves a process in a session of its own that ignores SIGTERM, started by one that has already ended."""

    def open(self, spec):
        super().open(spec)
        subprocess.run([sys.executable, "-c", FORKS], stdout=subprocess.DEVNULL, start_new_session=True, check=True)
        _mark("daemon")


class DaemonAndHang(Daemon):
    def score(self, batch, request):
        _for_ever()


class Floods(FakeScorer):
    """Writes more log than anyone reads."""

    def score(self, batch, request):
        for _ in range(FLOOD >> 16):
            os.write(2, b"x" * (1 << 16))
        return super().score(batch, request)


class FillsDisk(FakeScorer):
    """Takes all the room there is beside the home, once."""

    def score(self, batch, request):
        home = Path(os.environ["HOME"])
        if not (home / "filled").exists():
            _mark("filled")
            with (home.parent / "out/filler").open("wb", buffering=0) as stream, suppress(OSError):
                while stream.write(bytes(4096)):
                    pass
        return super().score(batch, request)


class Waits(FakeScorer):
    """Scores once it may: when the file ``go`` is in the home."""

    def score(self, batch, request):
        _mark("waiting")
        while not (Path(os.environ["HOME"]) / "go").exists():
            time.sleep(0.02)
        return super().score(batch, request)


class Unhurried(FakeScorer):
    """Takes a moment for each thing, so that there is time to be killed in the middle of it."""

    def open(self, spec):
        time.sleep(0.1)
        super().open(spec)

    def score(self, batch, request):
        time.sleep(0.1)
        return super().score(batch, request)

    def close(self):
        time.sleep(0.1)
        super().close()

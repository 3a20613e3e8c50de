"""Faults of the machine: the coordinator is killed, the disk is full or read-only, the clock goes back."""

import json
import os
import shlex
import shutil
import sys

from attrs import evolve, frozen

from .place import MODULES, Done, Place
from .table import Fault

WHOLE = {"status": "pass", "code": 0, "kept": "2 sealed"}
LIMIT = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
os.execv(sys.argv[1], sys.argv[1:])
"""


def killed_parent(place: Place) -> Done:
    """Kill the coordinator while the training side waits, then run again."""
    place.write("Waits")
    running = place.start()
    place.until((place.home / "waiting").exists, running)
    place.kill(running)
    assert place.kept() == "1 sealed"
    (place.home / "go").touch()
    done = place.run()
    assert done.document["engines"] == {"distinct": 2, "constructed": 1, "reused_from_disk": 1}
    return done


def two_at_once(place: Place) -> Done:
    """A second run while the first one scores; the first is not disturbed."""
    place.write("Waits")
    running = place.start()
    place.until((place.home / "waiting").exists, running)
    refused = place.run()
    assert f"process {running.process.pid}" in refused.message
    (place.home / "go").touch()
    assert place.wait(running).code == 0
    return refused


def clock_set_back(place: Place) -> Done:
    """Every process reads a clock that goes back a minute a time; then all files are of tomorrow."""
    place.write()
    first = evolve(place, extra={"PYTHONPATH": os.pathsep.join([str(MODULES / "backwards"), _path(place)])}).run()
    assert first.code == 0, first.err
    tomorrow = (MODULES / "plugin.py").stat().st_mtime + 100 * 86400
    for path in place.out.rglob("*"):
        os.utime(path, (tomorrow, tomorrow))
    done = place.run()
    assert done.document["engines"]["reused_from_disk"] == 2
    return done


def _path(place: Place) -> str:
    return place.environment["PYTHONPATH"]


def _tmpfs(size: str) -> str:
    return f"mount -t tmpfs -o size={size} none out"


def _grown(size: str) -> str:
    return f"mount -o remount,size={size} out"


@frozen
class OnDisk:
    """Run in a file system of its own, mounted on ``out`` for these commands alone, and keep a copy of what is there.

    ``steps`` are shell commands; ``$RUN`` runs xcfg and leaves its document in ``done.json``, its code in ``code``.
    """

    steps: tuple[str, ...]
    training: str = "fake"

    def __call__(self, place: Place) -> Done:
        place.write(self.training)
        place.out.mkdir()
        run = f"{shlex.join(place.command('--jobs', 1))} >done.json 2>err.txt && echo 0 >code || echo $? >code"
        script = "\n".join(["set -e", f"run() {{ {run}; }}", *self.steps, "mkdir kept", "cp -a out/. kept/"])
        prefix = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
        ended = place.call([*prefix, "/bin/sh", "-c", script])
        assert ended.code == 0, ended
        place.out.rmdir()
        shutil.move(place.root / "kept", place.out)
        text = {name: (place.root / name).read_text() for name in ("done.json", "err.txt", "code")}
        return Done(int(text["code"]), text["done.json"], text["err.txt"])


def small_files(place: Place) -> Done:
    """A limit on the size of files, which needs no right to mount anything."""
    place.write()
    return evolve(place, extra={"PYTHONDONTWRITEBYTECODE": "1"}).call([sys.executable, "-c", LIMIT, *place.command()])


def stale_lock(place: Place) -> Done:
    """What a killed run leaves of its lock, with the number of a process that is alive and not ours."""
    place.write()
    assert place.run().code == 0
    (place.out / ".lock").touch()
    (place.out / ".lock-holder.json").write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    return place.run()


def no_output(place: Place) -> Done:
    """Standard output is full: the folder is finished all the same, only the document is lost."""
    place.write()
    done = place.call(["/bin/sh", "-c", f"exec {shlex.join(place.command())} >/dev/full"])
    assert "Traceback" not in done.err or done.code != 0
    return done


ROWS = (
    Fault(
        name="parent is killed",
        how="SIGKILL to `xcfg run` while the second side scores; run again",
        do=killed_parent,
        **WHOLE,
    ),
    Fault(
        name="disk full",
        how="the output folder is a tmpfs of 2 MiB, which the second engine fills while it scores",
        do=OnDisk((_tmpfs("2m"), "run"), "FillsDisk"),
        status="error",
        code=7,
        kept="1 sealed",
        says="no space left[^|]*No space left on device",
        needs="mount",
    ),
    Fault(
        name="disk full, then room",
        how="the same; what filled it is removed, the tmpfs is made larger, run again",
        do=OnDisk((_tmpfs("2m"), "run", "rm out/filler", _grown("64m"), "run"), "FillsDisk"),
        needs="mount",
        **WHOLE,
    ),
    Fault(
        name="a disk that is too small from the start",
        how="a tmpfs of 16 KiB; made larger, run again",
        do=OnDisk((_tmpfs("16k"), "run", _grown("64m"), "run")),
        needs="mount",
        **WHOLE,
    ),
    Fault(
        name="file size limit",
        how="no file may exceed 2 KiB (RLIMIT_FSIZE)",
        do=small_files,
        status="error",
        code=7,
        kept="nothing",
        says="no space left[^|]*File too large",
    ),
    Fault(
        name="read-only folder",
        how="the output folder is mounted read-only",
        do=OnDisk((_tmpfs("64m,ro"), "run")),
        status="error",
        code=2,
        kept="nothing",
        says="Read-only file system",
        needs="mount",
    ),
    Fault(
        name="finished folder that became read-only",
        how="run, mount it read-only, run again",
        do=OnDisk((_tmpfs("64m"), "run", "mount -o remount,ro out", "run")),
        status="error",
        code=2,
        kept="2 sealed",
        says="Read-only file system",
        needs="mount",
    ),
    Fault(
        name="standard output is full",
        how="`xcfg run --json > /dev/full`",
        do=no_output,
        status="none",
        code=7,
        kept="2 sealed",
        says="no space left on device",
    ),
    Fault(
        name="clock set back",
        how="each reading of the clock is a minute before the last; then all files are dated in the future; run again",
        do=clock_set_back,
        **WHOLE,
    ),
    Fault(
        name="two runs at once",
        how="a second `xcfg run` in the folder of a running one, which goes on and passes",
        do=two_at_once,
        status="error",
        code=2,
        kept="2 sealed",
        says="another run is writing here: process",
    ),
    Fault(
        name="lock of a dead process",
        how="a lock file with another process's number is left; run again",
        do=stale_lock,
        **WHOLE,
    ),
)

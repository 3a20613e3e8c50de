"""``python -m xcfg_ray.keeper SCRATCH LOG -- COMMAND...``: runs a command in a folder, which goes when the actor goes.

The command shares the keeper's standard input, whose other end the actor holds, and ends with it; then the keeper
removes the folder. It says its process number and the command's exit code on standard output, and closes it when
nothing is left.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run the keeper; returns its exit code."""
    scratch, log = map(Path, arguments[:2])
    if os.fork():  # Ray kills the children of a worker that ends, but not theirs
        os._exit(0)
    os.setsid()
    with log.open("ab") as stream:
        command = subprocess.Popen(arguments[3:], stdout=stream, stderr=stream)
    os.write(1, b"%d\n" % os.getpid())
    code = command.wait()
    with suppress(BrokenPipeError):  # the actor is dead, so nobody asks
        os.write(1, b"%d\n" % (code if code >= 0 else 128 - code))
    while os.read(0, 4096):
        continue
    shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

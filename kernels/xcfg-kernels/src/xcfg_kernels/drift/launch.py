"""Starting the ranks of one topology, and seeing to it that none is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numpy as np
import psutil
from numpy.typing import NDArray

from xcfg.errors import EnvironmentFault
from xcfg_kernels.drift.spec import DriftSpec, Topology
from xcfg_kernels.drift.task import TASK, result_file, task

Ranks: TypeAlias = list[dict[str, NDArray[np.float32]]]
"""``DTYPE lse`` and ``DTYPE logprob`` of the rows of each rank, in rank order."""
LOGS = "logs"
TAIL = 2000
"""Characters of a rank's standard error that an error repeats."""


def command(topology: Topology, folder: Path) -> list[str]:
    """The command line of torch's elastic launcher."""
    elastic = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(topology.world)]
    kept = ["--log-dir", str(folder / LOGS), "--redirects", "3", "--max-restarts", "0"]
    return [sys.executable, *elastic, *kept, "-m", "xcfg_kernels.drift.rank", str(folder)]


def launched(spec: DriftSpec, topology: Topology, folder: Path, timeout: float) -> Ranks:
    """Results of the topology's ranks, which read the inputs in ``folder``. Raises EnvironmentFault."""
    if find_spec("torch") is None:
        hint = 'pip install "xcfg-kernels[engine]"'
        raise EnvironmentFault("torch is not installed in this environment", where=sys.executable, hint=hint)
    (folder / TASK).write_text(json.dumps(task(spec, topology)))
    for old in folder.glob("result-*.npz"):
        old.unlink()
    where = f"tp {topology.tp}, cp {topology.cp}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = subprocess.Popen(
        command(topology, folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        said = started.communicate(timeout=timeout)[1]
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(f"the ranks took more than {timeout:g} s", where=where, hint="--timeout") from None
    finally:
        end(started)
    if started.returncode:
        raise EnvironmentFault(f"a rank failed: {_reason(folder, said)}", where=where)
    return [dict(np.load(folder / result_file(rank))) for rank in range(topology.world)]


def end(started: subprocess.Popen[str]) -> None:
    """Kill the launcher and all it started: ranks have sessions of their own and outlive a launcher that is killed."""
    if started.poll() is None:
        try:
            launcher = psutil.Process(started.pid)
            launcher.suspend()  # so that it starts none between the list and its end
            family = launcher.children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        started.kill()
        for process in family:
            if process.is_running():
                process.kill()
        psutil.wait_procs(family)
        started.wait()


def _reason(folder: Path, said: str) -> str:
    """The end of what the first rank that said something wrote on standard error, else of the launcher's."""
    files = sorted((folder / LOGS).rglob("stderr.log"))
    texts = [text for path in files if (text := path.read_text(errors="replace").strip())]
    return (texts[0] if texts else said.strip())[-TAIL:]

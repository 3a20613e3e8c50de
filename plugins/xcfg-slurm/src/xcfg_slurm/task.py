"""What runs inside a job: the command of one node's part of a launch."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from attrs import evolve

from xcfg.model.codec import load_json, structure
from xcfg.plugin.executor import JOB, Job

MEET = "rendezvous.txt"
LOG = "machine-{node}.log"
_MEET_S = 300.0
_TICK_S = 0.1


def run_node(root: str, folder: str, nodes: int) -> int:
    """Run the launch's command on this node of the job; returns its exit code.

    The command ends with this process, however that ends: its standard input closes.
    """
    place = Path(root) / folder
    job = evolve(structure(load_json((place / JOB).read_bytes(), where=JOB), Job), root=root)
    node, meet, here = 0, "", ""
    if nodes > 1:
        node, here = int(os.environ["SLURM_NODEID"]), socket.getfqdn()
        meet = _meet(place / MEET, here) if node == 0 else _told(place / MEET)
    command = job.argv(python=sys.executable, nodes=nodes, node=node, rendezvous=meet, address=here, tied=True)
    with (place / "logs" / LOG.format(node=node)).open("ab") as log:
        running = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=log, stderr=log)
        try:
            return running.wait()
        finally:
            assert running.stdin is not None
            running.stdin.close()
            running.wait()


def _meet(path: Path, host: str) -> str:
    """A free port of this node, written down for the others."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        meet = f"{host}:{probe.getsockname()[1]}"
    arriving = path.with_suffix(".partial")
    arriving.write_text(meet)
    arriving.replace(path)
    return meet


def _told(path: Path) -> str:
    """The place to meet that node 0 wrote down. Raises TimeoutError where it never did."""
    until = time.monotonic() + _MEET_S
    while not path.is_file():
        if time.monotonic() > until:
            raise TimeoutError(f"node 0 named no place to meet in {_MEET_S:g} s")
        time.sleep(_TICK_S)
    return path.read_text()

"""Runs the ranks of a launch on this machine: its command line, its environment, its limits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from xcfg.model.scorer import Launch
from xcfg.plugin.executor import Ended, Job
from xcfg.runner.clock import Clock
from xcfg.runner.durable import make_folders
from xcfg.runner.environment import child_environment
from xcfg.runner.launch import LaunchSpec, folders, read_spec
from xcfg.runner.staging import finished, phase
from xcfg.runner.supervisor import supervise

SPEC = "spec.json"
LOGS = "logs"


@frozen(kw_only=True)
class Node:
    """One of the machines of an elastic launch over ``nodes`` of them.

    ``rendezvous`` is ``host:port`` on node 0, ``address`` this node's own where its host name does not do.
    """

    number: int = 0
    nodes: int = 1
    rendezvous: str = ""
    address: str = ""


ALONE = Node()


def run_launch(job: Job, watch: Callable[[], object], stop: threading.Event, node: Node = ALONE) -> Ended:
    """Run the job's ranks of this machine until nothing of them is left; ``watch`` is called all the while."""
    spec = read_spec(job.place / SPEC)
    clock = Clock(limits=job.limits)
    logs = job.place / LOGS if node.number == 0 else job.place / LOGS / f"node-{node.number}"
    for folder in (logs, *folders(spec)):
        make_folders(folder)

    def over() -> bool:
        watch()
        return clock.over(phase(Path(spec.folder), spec.world_size), finished(spec))

    ended = supervise(command(job, spec, logs, node), child_environment(job.environment), logs, over, stop)
    watch()
    return ended


def command(job: Job, spec: LaunchSpec, logs: Path, node: Node) -> list[str]:
    """The command line of the node's ranks."""
    python = job.python or sys.executable
    child = ["-m", "xcfg.runner.child", str(job.place / SPEC)]
    if spec.launch is Launch.SINGLE:
        return [python, *child]
    meeting = ["--standalone"]
    if node.nodes > 1:
        meeting = ["--nnodes", str(node.nodes), "--node-rank", str(node.number)]
        meeting += ["--rdzv-backend", "c10d", "--rdzv-endpoint", node.rendezvous, "--rdzv-id", "xcfg"]
        meeting += ["--rdzv-conf", f"is_host={int(node.number == 0)}"]
        meeting += ["--local-addr", node.address] if node.address else []
    elastic = ["-m", "torch.distributed.run", *meeting, "--nproc-per-node", str(spec.world_size // node.nodes)]
    return [python, *elastic, "--log-dir", str(logs), "--redirects", "3", "--max-restarts", "0", *child]

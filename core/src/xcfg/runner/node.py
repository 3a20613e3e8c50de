"""``python -m xcfg.runner.node FOLDER``: runs the ranks of a launch that belong to this machine.

Executors start it in the folder that holds the inputs of a launch; ``FOLDER`` is the launch's, below it. It writes how
the launch ended and exits 0; any other exit code means that it could not do that.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from attrs import evolve

from xcfg.model.codec import load_json, structure
from xcfg.plugin.executor import JOB, Job, ended_name
from xcfg.runner.durable import write_json
from xcfg.runner.launching import Node, run_launch


def main(arguments: list[str]) -> int:
    """Run the node's ranks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m xcfg.runner.node", description=main.__doc__)
    parser.add_argument("folder", help="the launch's folder, relative to the folder that holds the inputs")
    parser.add_argument("--nodes", type=int, default=1, help="machines of the launch")
    parser.add_argument("--node", type=int, default=0, help="number of this machine among them")
    parser.add_argument("--rendezvous", default="", metavar="HOST:PORT", help="a free port on machine 0")
    parser.add_argument("--address", default="", help="this machine's own, for the others")
    parser.add_argument("--tied", action="store_true", help="end the launch when standard input closes")
    options = parser.parse_args(arguments)
    path = Path(options.folder) / JOB
    job = evolve(structure(load_json(path.read_bytes(), where=str(path)), Job), root=str(Path.cwd()))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if options.tied:
        threading.Thread(target=_stop_at_end_of_input, args=(stop,), daemon=True).start()
    node = Node(number=options.node, nodes=options.nodes, rendezvous=options.rendezvous, address=options.address)
    ended = run_launch(job, lambda: None, stop, node)
    write_json(job.place / ended_name(options.node), ended)
    return 0


def _stop_at_end_of_input(stop: threading.Event) -> None:
    while os.read(0, 4096):
        continue
    stop.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

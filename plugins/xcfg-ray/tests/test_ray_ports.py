"""Where the ranks of a launch meet, and who took the place."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

from xcfg.model.codec import dump_json
from xcfg.model.scorer import Launch
from xcfg.plugin.executor import Job, Limits
from xcfg_ray.machine import Machine, Meeting
from xcfg_ray.ports import free_port, listens, taken

LISTEN = """
import socket, sys
server = socket.create_server(("", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


def test_a_port_is_free_until_somebody_listens() -> None:
    port = free_port()
    assert not taken(port)
    with socket.create_server(("", port)):
        assert taken(port)
        assert not listens(os.getpid(), port)  # this process is no descendant of itself
    assert not taken(port)


def test_a_descendant_that_listens_is_found() -> None:
    with subprocess.Popen([sys.executable, "-c", LISTEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        port = int(child.stdout.readline())
        assert listens(os.getpid(), port)
        assert taken(port)
        child.stdin.close()


@pytest.fixture
def elastic() -> dict[str, bytes]:
    """Inputs of an elastic launch whose ranks would be of no use: it never gets so far."""
    job = Job(
        folder="launch",
        inputs=(),
        launch=Launch.ELASTIC,
        ranks=2,
        environment={"XCFG_LAUNCH": "test"},
        limits=Limits(start=60, score=60, stop=60),
    )
    spec = {
        "schema": "xcfg.launch/1",
        "role": "training",
        "scorer": "fake",
        "target": "xcfg.testing.gated:Shared",
        "launch": "elastic",
        "world_size": 2,
        "checkpoint": "nowhere",
        "engine": [],
        "folder": "staging",
    }
    return {"launch/job.json": dump_json(job).encode(), "launch/spec.json": json.dumps(spec).encode()}


def test_a_port_taken_in_between_is_known(elastic: dict[str, bytes], world) -> None:
    pytest.importorskip("torch")
    machine = Machine()
    with socket.create_server(("", 0)) as other:
        port = other.getsockname()[1]
        machine.start("launch", elastic, 2, 0, f"127.0.0.1:{port}", "127.0.0.1")
        met = Meeting.AWAITED
        while met is Meeting.AWAITED:
            met = machine.met(port, 1.0)
    assert met is Meeting.TAKEN
    assert machine.finish()
    assert not world.left()


def test_machine_0_opens_its_port_and_ends_when_told(elastic: dict[str, bytes], world) -> None:
    pytest.importorskip("torch")
    machine = Machine()
    port = free_port()
    machine.start("launch", elastic, 2, 0, f"127.0.0.1:{port}", "127.0.0.1")
    met = Meeting.AWAITED
    while met is Meeting.AWAITED:
        met = machine.met(port, 1.0)
    assert met is Meeting.OPEN  # it waits there for machine 1
    machine.end()
    names = []
    while (sent := machine.poll(0.5)).over is None:
        names += [part.path for part in sent.parts]
    names += [part.path for part in sent.parts]
    assert names[-1] == "ended.json" and "job.json" not in names
    assert machine.finish()
    assert not world.left()

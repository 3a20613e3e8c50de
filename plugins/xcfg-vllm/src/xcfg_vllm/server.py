"""One ``vllm serve`` process: its flags, its start, and HTTP over a socket that only this user can open."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil

from xcfg_vllm.environment import IN_PROCESS
from xcfg_vllm.faults import EngineFault

DEV_MODE = "VLLM_SERVER_DEV_MODE"
POLL_SECONDS = 0.2


class Server:
    """A running server; the socket lies in a folder of mode 0700, since vLLM's own endpoints for development are on.

    Starting it takes as long as building the engine. Raises EngineFault where the process ends before it answers.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """``arguments`` are those of ``vllm.LLM``, with what only a server takes."""
        self.folder = Path(tempfile.mkdtemp(prefix="xcfg-"))  # short: a socket's path has at most 107 bytes
        socket = self.folder / "socket"
        command = [sys.executable, "-m", "xcfg_vllm.serve", "serve", "--uds", str(socket)]
        # nothing goes to stdout, which may belong to a protocol
        self.process = subprocess.Popen(
            [*command, *flags(arguments)],
            env={**os.environ, IN_PROCESS: "1", DEV_MODE: "1"},
            stdin=subprocess.DEVNULL,
            stdout=2,
        )
        self.http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(socket), limits=httpx.Limits(max_connections=None)),
            base_url="http://vllm",
            timeout=None,
        )
        try:
            self._wait(socket)
        except BaseException:
            self.stop()
            raise

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer to a request, as JSON. Raises EngineFault for any other status than 200, with what was said."""
        answer = self.http.post(path, json=body)
        if answer.status_code != 200:
            raise EngineFault(f"the server answered {path} with {answer.status_code}: {answer.text[:500]}")
        return answer.json()

    def owns(self, pid: int) -> bool:
        """Whether a process was started by the server."""
        return pid in {process.pid for process in psutil.Process(self.process.pid).children(recursive=True)}

    def stop(self) -> None:
        """End the server itself; its processes are the caller's to end."""
        self.http.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self, socket: Path) -> None:
        while True:
            code = self.process.poll()
            if code is not None:
                raise EngineFault(f"vllm serve ended with {code} before it answered; its last lines say why")
            if socket.exists() and self._answers():
                return
            time.sleep(POLL_SECONDS)

    def _answers(self) -> bool:
        try:
            return self.http.get("/health").status_code == 200
        except httpx.TransportError:
            return False  # bound, and not yet listening


def flags(arguments: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as flags; None is left out."""
    found: list[str] = []
    for name, value in arguments.items():
        flag = name.replace("_", "-")
        if value is True or value is False:
            found.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, Mapping):
            found += [f"--{flag}", json.dumps(dict(value))]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            found += [f"--{flag}", *map(str, value)]
        elif value is not None:
            found += [f"--{flag}", str(value)]
    return found

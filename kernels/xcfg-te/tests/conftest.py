"""Where the tests find Transformer Engine: in this environment, or in a folder of its own beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SITE = Path(sys.prefix) / "transformer-engine"
"""Where ``nox -s dev`` puts the Python files of Transformer Engine: other packages must not see them installed."""


@pytest.fixture(scope="session")
def interpreting() -> dict[str, str]:
    """The environment of a process that has Transformer Engine and Triton's interpreter."""
    for name in ("torch", "triton"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    if find_spec("transformer_engine") is None and not SITE.is_dir():
        pytest.skip(f"Transformer Engine is neither installed nor in {SITE}")
    paths = [*([str(SITE)] if find_spec("transformer_engine") is None else []), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture(scope="session")
def interpreted(interpreting):
    """Runs a Python program in that environment; what it printed."""

    def run(*arguments: object, **variables: str) -> str:
        command = [sys.executable, *map(str, arguments)]
        environment = {**interpreting, **variables}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run

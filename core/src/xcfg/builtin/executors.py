"""The executor that core brings."""

from __future__ import annotations

from xcfg.model.executor import ExecutorDescriptor

EXECUTORS = (
    ExecutorDescriptor(
        id="local",
        summary="On this machine, as many engines at once as memory and cores allow",
        target="xcfg.runner.local:LocalExecutor",
    ),
)

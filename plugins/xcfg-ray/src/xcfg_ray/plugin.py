"""Hook implementations of xcfg-ray: the executor's descriptor only; imports no ray."""

from __future__ import annotations

from collections.abc import Sequence

from xcfg.model.executor import ExecutorDescriptor
from xcfg.plugin import hookimpl
from xcfg_ray.options import INSTALL, OPTIONS


@hookimpl
def xcfg_executors() -> Sequence[ExecutorDescriptor]:
    """The executor ``ray``."""
    return (
        ExecutorDescriptor(
            id="ray",
            summary="On a Ray cluster: each launch an actor, an elastic one a placement group",
            target="xcfg_ray.executor:RayExecutor",
            requires=("ray",),
            install=INSTALL,
            options=OPTIONS,
        ),
    )

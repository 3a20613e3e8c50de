"""Hook implementations of xcfg-slurm: the executor's descriptor only; imports no submitit."""

from __future__ import annotations

from collections.abc import Sequence

from xcfg.model.executor import ExecutorDescriptor
from xcfg.plugin import hookimpl
from xcfg_slurm.options import INSTALL, OPTIONS


@hookimpl
def xcfg_executors() -> Sequence[ExecutorDescriptor]:
    """The executor ``slurm``."""
    return (
        ExecutorDescriptor(
            id="slurm",
            summary="On Slurm through submitit: each launch a job, over a shared file system",
            target="xcfg_slurm.executor:SlurmExecutor",
            requires=("submitit",),
            install=INSTALL,
            options=OPTIONS,
        ),
    )

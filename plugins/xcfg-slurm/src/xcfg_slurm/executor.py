"""The executor ``slurm``."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping

from xcfg.errors import EnvironmentFault
from xcfg.plugin.executor import Ended, Job
from xcfg_slurm.options import INSTALL, read_options


class SlurmExecutor:
    """Runs each launch as a job in the output folder itself, which every node must see under the same path."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Raises InvalidInput for a wrong option, EnvironmentFault without submitit or Slurm's commands."""
        self._options = read_options(options)
        try:
            import submitit  # noqa: F401
        except ImportError as error:
            raise EnvironmentFault("submitit is not installed", where="--executor slurm", hint=INSTALL) from error
        if self._options.cluster == "slurm" and not (shutil.which("sbatch") and shutil.which("srun")):
            raise EnvironmentFault(
                "sbatch and srun are not on the path, so no job can be submitted from this machine",
                where="--executor slurm",
                hint="call xcfg on a login node; cluster=local runs jobs here",
            )

    def slots(self) -> int | None:
        """Jobs in the queue at once; on this machine, what its memory and cores allow."""
        return None if self._options.cluster == "local" else self._options.jobs

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Submit the launch and wait for its end."""
        from xcfg_slurm.following import Following
        from xcfg_slurm.submitting import nodes_of, submit

        nodes = nodes_of(job, self._options)
        submitted = submit(job, self._options)
        return Following(job=job, submitted=submitted, nodes=nodes, watch=watch, stop=stop).end()

    def close(self) -> None:
        """Nothing is held: every job has ended."""

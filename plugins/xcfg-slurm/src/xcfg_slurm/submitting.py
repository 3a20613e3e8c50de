"""Submits a launch as a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xcfg.errors import EnvironmentFault
from xcfg.model.scorer import Launch
from xcfg.plugin.executor import Job
from xcfg_slurm.options import SlurmOptions
from xcfg_slurm.task import run_node

FOLDER = "submitit"
"""Submitit's own files, in the launch's folder."""
_SIGNAL_S = 60


def nodes_of(job: Job, options: SlurmOptions) -> int:
    """Nodes that a launch takes. Raises EnvironmentFault where its ranks cannot be shared out evenly."""
    if job.launch is not Launch.ELASTIC or not options.ranks_per_node:
        return 1
    nodes, rest = divmod(job.ranks, options.ranks_per_node)
    if rest and nodes:
        raise EnvironmentFault(
            f"ranks_per_node={options.ranks_per_node} does not divide {job.ranks} ranks", where="--executor slurm"
        )
    return max(1, nodes)


def parameters(job: Job, options: SlurmOptions) -> dict[str, Any]:
    """What submitit is asked for: a task a node, with all its ranks."""
    nodes = nodes_of(job, options)
    elastic = job.launch is Launch.ELASTIC
    ranks = job.ranks // nodes if elastic else 1
    gpus = options.gpus_per_rank * ranks if elastic else options.gpus_per_engine
    asked: dict[str, Any] = {
        "name": f"xcfg-{Path(job.folder).name}",
        "timeout_min": options.time,
        "nodes": nodes,
        "tasks_per_node": 1,
        "cpus_per_task": options.cpus_per_rank * ranks,
        "gpus_per_node": gpus,
        "slurm_signal_delay_s": _SIGNAL_S,
        "slurm_additional_parameters": {"no-requeue": True},  # what was lost is launched anew, by the run
    }
    if options.memory_per_rank:
        asked["mem_gb"] = options.memory_per_rank * ranks
    for name in ("partition", "account"):
        if value := getattr(options, name):
            asked[f"slurm_{name}"] = value
    return asked


def submit(job: Job, options: SlurmOptions) -> Any:
    """The submitted job. Raises EnvironmentFault where Slurm is not there or refuses it."""
    import submitit

    try:
        executor = submitit.AutoExecutor(folder=job.place / FOLDER, cluster=options.cluster)
        executor.update_parameters(**parameters(job, options))
        return executor.submit(run_node, job.root, job.folder, nodes_of(job, options))
    except (RuntimeError, OSError, submitit.core.utils.FailedSubmissionError) as error:
        raise EnvironmentFault(f"the job was not accepted: {error}", where="--executor slurm") from error

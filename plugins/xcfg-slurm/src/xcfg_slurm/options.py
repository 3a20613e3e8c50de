"""Options of the executor ``slurm``, read from text."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from xcfg.errors import InvalidInput

INSTALL = 'pip install "xcfg-slurm[engine]"'
CLUSTERS = ("slurm", "local")
OPTIONS = {
    "cluster": "slurm, or local for submitit's processes on this machine (default slurm)",
    "partition": "Slurm's partition (default: its own choice)",
    "account": "Slurm's account (default: its own choice)",
    "time": "minutes a job may take, all side runs of an engine together (default 240)",
    "cpus_per_rank": "CPUs that a rank is given (default 1)",
    "gpus_per_rank": "GPUs that a rank is given (default 0)",
    "gpus_per_engine": "GPUs of an engine in one process, such as vLLM with all its workers (default: gpus_per_rank)",
    "memory_per_rank": "GiB that a rank is given (default: Slurm's own choice)",
    "ranks_per_node": "ranks on a node, a divisor of their number (default: all)",
    "jobs": "jobs in the queue at once (default 8)",
}


@frozen(kw_only=True)
class SlurmOptions:
    """``time`` is in minutes, ``memory_per_rank`` in GiB, 0 where Slurm decides; ``ranks_per_node`` 0 means all."""

    cluster: str = "slurm"
    partition: str = ""
    account: str = ""
    time: int = 240
    cpus_per_rank: int = 1
    gpus_per_rank: int = 0
    gpus_per_engine: int = 0
    memory_per_rank: float = 0.0
    ranks_per_node: int = 0
    jobs: int = 8


def read_options(given: Mapping[str, str]) -> SlurmOptions:
    """The options of their texts. Raises InvalidInput for one that is unknown or cannot be read."""
    for name in given:
        if name not in OPTIONS:
            raise InvalidInput(
                f"the executor slurm has no option {name}",
                where="--executor-option",
                hint=f"it has {', '.join(OPTIONS)}",
            )
    cluster = given.get("cluster", "slurm")
    if cluster not in CLUSTERS:
        raise InvalidInput(f"cluster {cluster} is not one of {', '.join(CLUSTERS)}", where="--executor-option")
    gpus = _count(given, "gpus_per_rank", 0)
    return SlurmOptions(
        cluster=cluster,
        partition=given.get("partition", ""),
        account=given.get("account", ""),
        time=_count(given, "time", 240, least=1),
        cpus_per_rank=_count(given, "cpus_per_rank", 1, least=1),
        gpus_per_rank=gpus,
        gpus_per_engine=_count(given, "gpus_per_engine", gpus),
        memory_per_rank=_number(given, "memory_per_rank", 0.0),
        ranks_per_node=_count(given, "ranks_per_node", 0),
        jobs=_count(given, "jobs", 8, least=1),
    )


def _count(given: Mapping[str, str], name: str, default: int, least: int = 0) -> int:
    value = _number(given, name, float(default))
    if value != int(value) or value < least:
        raise InvalidInput(
            f"{name} must be a whole number of at least {least}, not {given[name]}", where="--executor-option"
        )
    return int(value)


def _number(given: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(given.get(name, default))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InvalidInput(f"{name} must be a number of at least 0, not {given[name]}", where="--executor-option")
    return value

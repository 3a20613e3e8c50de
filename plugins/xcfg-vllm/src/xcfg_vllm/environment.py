"""Environment variables a vLLM process must have before vllm is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

IN_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"
BINDING = "VLLM_CPU_OMP_THREADS_BIND"
THREADS = "OMP_NUM_THREADS"
SAMPLE_BATCH = "XCFG_VLLM_SAMPLE_BATCH"
"""Prompts submitted together while sampling: the batch size of the side whose process this is."""

FIXED: Mapping[str, str] = {
    IN_PROCESS: "0",
    "HF_HUB_OFFLINE": "1",
    "SPT_NOENV": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS": "2",
}
"""Whatever is run: the engine core stays in this process, so that the live scheduler can be read.

``SPT_NOENV`` keeps the titles that vLLM gives its workers from overwriting their environment, by which the host knows
its processes.
"""


def process_environment(*, ranks: int, threads: int, cpus: Sequence[int] | None = None) -> dict[str, str]:
    """Every variable of a process that builds one engine of ``ranks`` workers with ``threads`` threads each."""
    return {**FIXED, **thread_environment(ranks=ranks, threads=threads, cpus=cpus)}


def thread_environment(*, ranks: int, threads: int, cpus: Sequence[int] | None = None) -> dict[str, str]:
    """The variables that give each worker its threads.

    On a CPU each worker is bound to its own cores, or to none when there are too few cores.
    """
    return {BINDING: thread_binding(ranks=ranks, threads=threads, cpus=cpus), THREADS: str(threads)}


def thread_binding(*, ranks: int, threads: int, cpus: Sequence[int] | None = None) -> str:
    """Core list for vLLM: cores of one rank joined by commas, ranks by ``|``; ``nobind`` if cores do not suffice."""
    available = list(cpus) if cpus is not None else sorted(os.sched_getaffinity(0))
    if ranks * threads > len(available):
        return "nobind"
    shares = (available[rank * threads : (rank + 1) * threads] for rank in range(ranks))
    return "|".join(",".join(map(str, share)) for share in shares)


def check_environment(environment: Mapping[str, str] | None = None) -> None:
    """Raise RuntimeError unless this process can host an engine whose scheduler is readable."""
    seen = os.environ if environment is None else environment
    if seen.get(IN_PROCESS) != "0":
        raise RuntimeError(
            f"{IN_PROCESS} must be 0 before vllm is imported: the live scheduler cannot be read otherwise. "
            "Start the process with xcfg_vllm.environment.process_environment()."
        )

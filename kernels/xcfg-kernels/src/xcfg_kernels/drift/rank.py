"""One rank of a sweep, started by torch's elastic launcher: ``python -m xcfg_kernels.drift.rank FOLDER``.

Reads the task and its own part of the inputs from the folder, and writes ``FOLDER/result-RANK.npz``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from xcfg_kernels import selected_logprob_and_lse
from xcfg_kernels.drift.inputs import TARGETS, logits_file
from xcfg_kernels.drift.spec import DriftSpec, Topology
from xcfg_kernels.drift.task import TASK, result_file, task_of

Results: TypeAlias = dict[str, NDArray[np.float32]]


def scored(folder: Path, spec: DriftSpec, topology: Topology, group: dist.ProcessGroup, rank: int) -> Results:
    """Log-sum-exp and logprob of this rank's rows, under each dtype."""
    tp_rank, cp_rank = topology.place(rank)
    sharding, (first, end) = spec.sharding(topology, tp_rank), topology.rows(cp_rank, spec.rows)
    targets = torch.from_numpy(np.load(folder / TARGETS)[first:end])
    found: Results = {}
    for dtype in spec.dtypes:
        stored = np.load(folder / logits_file(dtype), mmap_mode="r")
        own = torch.from_numpy(stored[first:end, sharding.start : sharding.start + sharding.columns].copy())
        logits = own.view(torch.bfloat16) if dtype == "bfloat16" else own
        logprob, lse = selected_logprob_and_lse(
            logits, targets, sharding, group, reduction=spec.reduction, implementation=spec.implementation
        )
        found |= {f"{dtype} logprob": logprob.numpy(), f"{dtype} lse": lse.numpy()}
    return found


def main(folder: Path) -> None:
    """Score, write, and leave together with the other ranks."""
    spec, topology = task_of(json.loads((folder / TASK).read_text()))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    groups = [dist.new_group(list(range(at * topology.tp, (at + 1) * topology.tp))) for at in range(topology.cp)]
    found = scored(folder, spec, topology, groups[topology.place(rank)[1]], rank)
    np.savez(folder / result_file(rank), allow_pickle=False, **found)
    dist.barrier()
    os._exit(0)  # gloo's threads may abort a process that takes its group down; the result is on disk


if __name__ == "__main__":
    main(Path(sys.argv[1]))

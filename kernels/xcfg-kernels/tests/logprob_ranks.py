"""One rank of a tensor-parallel group on gloo: ``logprob_ranks.py FOLDER RANK WORLD PLAN``.

``PLAN`` names the cases, see :data:`PLANS`. Writes the bits of each case to ``FOLDER/RANK.npz``, and what refused
arguments raise to ``FOLDER/RANK.json``.
"""

from __future__ import annotations

import json
import runpy
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from xcfg.errors import InvalidInput
from xcfg_kernels import ReductionSpec, selected_logprob, selected_logprob_and_lse

CASES = runpy.run_path(str(Path(__file__).with_name("logprob_cases.py")))
CANONICAL, ORDER_FREE = CASES["CANONICAL"], CASES["ORDER_FREE"]
BIG = 151936
MEGATRON = {1: BIG, 2: 152064, 4: 152064}
SMALL = [(1024, lambda world: 1024), (1000, lambda world: 1024), (1001, lambda world: 1024)]
PLANS = {
    "small": [
        (vocab, padded, 64, seed, reduction, "eager")
        for vocab, padded in SMALL
        for seed in range(3)
        for reduction in (CANONICAL, ORDER_FREE)
    ],
    "large": [(BIG, lambda world: BIG, 2, 0, CANONICAL, "eager")],
    **{
        f"full {seed}": [
            (BIG, padded, 16, seed, reduction, implementation)
            for padded, reduction, implementation in [
                (lambda world: BIG, CANONICAL, "eager"),
                (lambda world: BIG, CANONICAL, "compiled"),
                (MEGATRON.__getitem__, ReductionSpec(block=128), "eager"),
                (MEGATRON.__getitem__, ReductionSpec(block=128), "compiled"),
                (MEGATRON.__getitem__, ReductionSpec(block=16), "eager"),
                (lambda world: BIG, ReductionSpec(block=16), "eager"),
                (MEGATRON.__getitem__, ORDER_FREE, "eager"),
            ]
        ]
        for seed in range(3)
    },
}
"""For each plan (vocabulary, padded vocabulary of a world, rows, seed, reduction, implementation)."""


def results(rank: int, world: int, plan: str):
    """Bits of logprobs, log-sum-exps and this rank's gradient of every case of the plan."""
    for number, (vocab, width, rows, seed, reduction, implementation) in enumerate(PLANS[plan]):
        padded = width(world)
        logits, targets, weights = CASES["case"](seed, rows, vocab, padded, CASES["DTYPES"][seed % 3])
        sharding = CASES["even"](vocab, padded, world, rank)
        leaf = logits[:, sharding.start : sharding.start + sharding.columns].clone().requires_grad_()
        options = {"reduction": reduction, "implementation": implementation}
        logprobs, lse = selected_logprob_and_lse(leaf, targets, sharding, dist.group.WORLD, **options)
        ((logprobs * weights[0]).sum() + (lse * weights[1]).sum()).backward()
        for name, values in (("logprob", logprobs), ("lse", lse), ("gradient", leaf.grad)):
            yield f"{number} {name}", CASES["bits"](values).numpy()


def context_parallel(rank: int):
    """Two tensor-parallel ranks twice, each pair with half of the rows: tensor-parallel ranks are neighbours."""
    logits, targets, _ = CASES["case"](11, 8, 1000, 1024)
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    sharding = CASES["even"](1000, 1024, 2, rank % 2)
    rows, columns = slice(rank // 2 * 4, rank // 2 * 4 + 4), slice(sharding.start, sharding.start + sharding.columns)
    found = selected_logprob(logits[rows, columns], targets[rows], sharding, groups[rank // 2])
    return CASES["bits"](found).numpy()


def refusals(rank: int, world: int) -> dict[str, str]:
    """What is raised where the ranks do not fit the sharding or each other."""
    logits, targets, _ = CASES["case"](12, 4, 1000, 1024)
    sharding = CASES["even"](1000, 1024, world, rank)
    own = logits[:, sharding.start : sharding.start + sharding.columns]
    other = CASES["even"](1001 if rank == 1 else 1000, 1024, world, rank)
    attempts = {
        "another rank": lambda: selected_logprob(own, targets, sharding.at((rank + 1) % world), dist.group.WORLD),
        "another vocabulary on rank 1": lambda: selected_logprob(own, targets, other, dist.group.WORLD),
        "another dtype on rank 1": lambda: selected_logprob(
            own.half() if rank == 1 else own, targets, sharding, dist.group.WORLD
        ),
        "no sharding": lambda: selected_logprob(own, targets, group=dist.group.WORLD),
    }
    return {name: _said(attempt) for name, attempt in attempts.items()}


def _said(attempt) -> str:
    try:
        attempt()
    except InvalidInput as refused:
        return str(refused)
    return "nothing"


def main(folder: Path, rank: int, world: int, plan: str) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=300))
    found = dict(results(rank, world, plan))
    if plan == "small" and world == 4:
        found["context parallel"] = context_parallel(rank)
    np.savez(folder / f"{rank}.npz", **found)
    said = refusals(rank, world) if plan == "small" and world > 1 else {}
    (folder / f"{rank}.json").write_text(json.dumps(said))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])

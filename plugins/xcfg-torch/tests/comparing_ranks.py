"""One rank of a process group that compares parts of one batch: ``comparing_ranks.py FOLDER RANK WORLD BACKEND``.

Writes what every case gives on this rank to ``FOLDER/RANK.json``.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

NAMES = ["prompt 0", "prompt 1 \u00fc \U0001f600", "prompt 2", "prompt 3", "prompt 4", "prompt 5"]
LENGTHS = [30, 1, 17, 44, 5, 60]
MASKED = (1, 4)
"""Rows without an active token."""
DEALT = {
    "uneven": [0, 0, 0, 0, 1, 0],
    "a rank without a sequence": [0, 0, 1, 1, 1, 0],
    "a rank whose tokens are all masked": [0, 1, 0, 0, 1, 0],
    "all on the last": [1, 1, 1, 1, 1, 1],
}
"""The rank of each row; in a world of three rank 2 takes nothing, then rows 2 and 5."""


def batch(drift: float = 0.02):
    """Rollout, training, mask, token ids of six sequences: lists of tensors."""
    rng = np.random.default_rng(0)
    rollout = [torch.tensor(-rng.exponential(1, n) - 0.5).to(torch.float32) for n in LENGTHS]
    training = [row + torch.tensor(rng.uniform(-drift, drift, len(row))).float() for row in rollout]
    masks = [torch.tensor(rng.random(n) < 0.8) for n in LENGTHS]
    for row in MASKED:
        masks[row][:] = False
    for row in (0, 2, 3, 5):
        masks[row][:2] = True
    return rollout, training, masks, [torch.arange(n) + 100 * row for row, n in enumerate(LENGTHS)]


def part(owners, rank, change=lambda rollout, training, masks, ids: None, drift=0.02):
    """The arguments of one rank."""
    lists = batch(drift)
    change(*lists)
    mine = [row for row, owner in enumerate(owners) if owner == rank]
    rollout, training, masks, ids = ([values[row] for row in mine] for values in lists)
    names = [NAMES[row] for row in mine]
    return {"rollout": rollout, "training": training, "mask": masks, "token_ids": ids, "sequence_ids": names}


def none_active(rollout, training, masks, ids):
    for mask in masks:
        mask[:] = False


def one_nan(rollout, training, masks, ids):
    training[3][1] = float("nan")


def one_tie(rollout, training, masks, ids):
    for row, place in ((5, 0), (3, 1), (2, 1)):
        rollout[row][place], training[row][place] = -1.0, -9.0


def padding(rollout, training, masks, ids):
    rollout[3][10:15], masks[3][10:15] = 0.0, True


def same_memory(arguments):
    """bfloat16 on both sides, one tensor the same."""
    for name in ("rollout", "training"):
        arguments[name] = [row.bfloat16() for row in arguments[name]]
    if arguments["training"]:
        arguments["training"][0] = arguments["rollout"][0]
    return arguments


def on(rank, mine, **changes):
    return changes if rank == mine else {}


def cases(rank, world):
    """Arguments by name of case."""
    deal = {
        name: [owner if row not in (2, 5) or world < 3 else 2 for row, owner in enumerate(owners)]
        for name, owners in DEALT.items()
    }
    deal["a rank without a sequence"] = DEALT["a rank without a sequence"]
    for name, owners in deal.items():
        yield name, part(owners, rank)
        yield f"{name}, drifting", part(owners, rank, drift=0.4)
    owners = deal["uneven"]
    yield "nothing active", part(owners, rank, none_active)
    yield "nothing at all", part([9] * 6, rank)
    yield "nan", part(DEALT["a rank without a sequence"], rank, one_nan)
    yield "tie", part(DEALT["a rank without a sequence"], rank, one_tie)
    yield "padding", part(DEALT["a rank without a sequence"], rank, padding)
    yield "same memory", same_memory(part(owners, rank)) if rank == 1 else part(owners, rank)
    yield "wrong mask", part(owners, rank) | on(rank, 1, mask=torch.ones(3, 3))
    yield "no data", part(owners, rank) | on(rank, 0, training=torch.zeros(6, 9, device="meta"))
    yield "other dtype", part(owners, rank) | on(rank, 1, dtype="float32")
    yield "no dtype", part(owners, rank) | on(rank, 1, dtype=None)


def tried(call):
    from xcfg.model.codec import unstructure

    try:
        return unstructure(call())
    except Exception as error:
        return {"raised": type(error).__name__, "said": str(error)}


def moved(arguments, device):
    def move(value):
        if isinstance(value, list):
            return [move(item) for item in value]
        return value.to(device) if isinstance(value, torch.Tensor) and value.device.type != "meta" else value

    return {name: move(value) for name, value in arguments.items()}


def run(folder: Path, rank: int, world: int, backend: str) -> None:
    from xcfg_torch import compare_logprobs

    torch.set_num_threads(1)
    device = torch.device("cpu")
    if backend == "nccl":
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
    dist.init_process_group(backend, init_method=f"file://{folder}/meet", rank=rank, world_size=world)
    group, found = dist.group.WORLD, {}
    for name, arguments in cases(rank, world):
        given = {"dtype": "bf16", **moved(arguments, device)}
        found[name] = tried(lambda given=given: compare_logprobs(**given, group=group))
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        given = moved(part(DEALT["uneven"], rank), device)
        found["inference"] = tried(lambda: compare_logprobs(**given, dtype="bf16", group=group))
    if backend == "gloo":
        pair = dist.new_group([0, 2], timeout=timedelta(seconds=3))
        owners = [{0: 0, 1: 2}[owner] for owner in DEALT["uneven"]]
        found["subgroup"] = tried(lambda: compare_logprobs(**part(owners, rank), dtype="bf16", group=pair))
        if rank == 0:
            found["left alone"] = tried(lambda: compare_logprobs(**part(owners, 0), dtype="bf16", group=pair))
    (folder / f"{rank}.json").write_text(json.dumps(found))
    if backend == "gloo":
        dist.barrier()  # rank 0 has waited for rank 2 in vain: neither leaves before
    dist.destroy_process_group()


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])

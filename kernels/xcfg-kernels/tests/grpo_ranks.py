"""One rank of the GRPO loss on gloo: ``grpo_ranks.py FOLDER RANK WORLD``.

Goes through every layout of the world, see :func:`layouts`, under every reduction, some twice. Writes the bits to
``FOLDER/RANK.npz`` and what refused calls raise to ``FOLDER/RANK.json``.
"""

from __future__ import annotations

import itertools
import json
import runpy
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from xcfg.errors import InvalidInput
from xcfg_kernels import ReductionSpec, even_shards, selected_logprob
from xcfg_kernels.grpo import LossLayout, LossReductionSpec, PolicyLossSpec, even_layout, grpo_loss

CASES = runpy.run_path(str(Path(__file__).with_name("grpo_cases.py")))
SEED, BLOCKS = 21, ReductionSpec(block=16)
POLICY = PolicyLossSpec(kl_weight=0.05)
REDUCTIONS = {
    f"{fields['normaliser']} {count} {order}": LossReductionSpec(**fields, count=count, order=order)
    for fields in (
        {"normaliser": "token_mean"},
        {"normaliser": "seq_mean"},
        {"normaliser": "seq_sum_token_mean"},
        {"normaliser": "constant", "constant": 96.0},
    )
    for count in ("global", "microbatch")
    for order in ("global_positions", "rank_major")
    if count == "global" or fields["normaliser"] in ("token_mean", "seq_mean")
}
UNEVEN = ([[[6], [0, 3]], [[1, 2, 4], [5, 7]]], [[0, 1, 2, 9, 10], [3, 4, 5, 6, 7, 8, 11]])
"""Sequences of two data parallel ranks, and positions of two context parallel ones that are no neighbours."""


def layouts(world: int):
    """(name, tensor parallel degree, layout of rank (cp, dp)) of every way to use ``world`` ranks."""
    for tp, cp, dp in itertools.product((1, 2, 4), repeat=3):
        if tp * cp * dp == world:
            for size in (1, 2):
                yield f"tp{tp} cp{cp} dp{dp} of {size}", tp, (cp, dp), even(cp, dp, size)
    if world == 4:
        yield "tp1 cp2 dp2 uneven", 1, (2, 2), uneven


def even(cp: int, dp: int, size: int):
    return lambda cp_rank, dp_rank: even_layout(
        sequences=8, width=12, microbatch=size, dp=(dp_rank, dp), cp=(cp_rank, cp)
    )


def uneven(cp_rank: int, dp_rank: int) -> LossLayout:
    return LossLayout(microbatches=UNEVEN[0], positions=UNEVEN[1], dp_rank=dp_rank, cp_rank=cp_rank)


def outcome(found, layout, reduction, tp=(0, 1), tp_group=None, cp_group=None, dp_group=None):
    """Loss, numbers of sequences, and the gradient (rows of this rank, its positions, its columns)."""
    rows, columns = list(layout.dp_rows[layout.dp_rank]), list(layout.positions[layout.cp_rank])
    sharding = even_shards(vocab_size=64, padded_vocab_size=64, tp_world=tp[1], tp_rank=tp[0])
    held = found["logits"][rows][:, columns][..., sharding.start : sharding.start + sharding.columns]
    leaf = held.contiguous().requires_grad_()
    logprobs = selected_logprob(leaf, found["targets"][rows][:, columns], sharding, tp_group, reduction=BLOCKS)
    parts = zip(logprobs.split([len(own) for own in layout.own]), layout.own, strict=True)
    batches = [CASES["microbatch"](found, part, list(own), columns) for part, own in parts]
    done = grpo_loss(batches, layout, POLICY, reduction, cp_group=cp_group, dp_group=dp_group)
    done.loss.backward()
    return [CASES["bits"](values).numpy() for values in (done.loss, done.sequences, leaf.grad)]


def groups_of(rank: int, tp: int, cp: int, dp: int):
    """(rank, group) of this rank along each axis: tensor parallel ranks are neighbours, then context, then data."""
    places = np.arange(tp * cp * dp).reshape(dp, cp, tp)
    here = [int(place[0]) for place in np.where(places == rank)]
    made = []
    for axis in (2, 1, 0):
        for members in np.moveaxis(places, axis, -1).reshape(-1, places.shape[axis]).tolist():
            group = dist.new_group(members)
            if rank in members:
                made.append((here[axis], group))
    return made


def results(rank: int, world: int, groups):
    found = CASES["tensors"](SEED)
    for name, tp, (cp, dp), layout_of in layouts(world):
        (tp_rank, tp_group), (cp_rank, cp_group), (dp_rank, dp_group) = groups[tp, cp, dp]
        for title, reduction in REDUCTIONS.items():
            for run in range(1 if name.endswith("of 2") else 2):
                values = outcome(
                    found, layout_of(cp_rank, dp_rank), reduction, (tp_rank, tp), tp_group, cp_group, dp_group
                )
                for kind, value in zip(("loss", "sequences", "gradient"), values, strict=True):
                    yield f"{name}|{title}|{run}|{kind}", value


def refusals(rank: int, world: int, groups) -> dict[str, str]:
    found, reduction = CASES["tensors"](SEED), LossReductionSpec(normaliser="token_mean")
    group, here = groups[1, 1, world][2][1], even(1, world, 1)(0, rank)
    other = LossReductionSpec(normaliser="seq_mean") if rank == 1 else reduction
    attempts = {
        "another reduction on rank 1": lambda: outcome(found, here, other, dp_group=group),
        "another rank": lambda: outcome(found, even(1, world, 1)(0, (rank + 1) % world), reduction, dp_group=group),
        "the group of another axis": lambda: outcome(found, even(1, 1, 1)(0, 0), reduction, dp_group=group),
    }
    return {name: _said(attempt) for name, attempt in attempts.items()}


def _said(attempt) -> str:
    try:
        attempt()
    except InvalidInput as refused:
        return str(refused)
    return "nothing"


def main(folder: Path, rank: int, world: int) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=300))
    shapes = {(tp, cp, dp) for _, tp, (cp, dp), _ in layouts(world)}
    groups = {shape: groups_of(rank, *shape) for shape in sorted(shapes)}
    np.savez(folder / f"{rank}.npz", **dict(results(rank, world, groups)))
    (folder / f"{rank}.json").write_text(json.dumps(refusals(rank, world, groups)))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

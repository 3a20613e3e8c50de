"""One rank of a tensor-parallel group on gloo: ``te_ranks.py FOLDER RANK WORLD``, under Triton's interpreter.

Scores every case of :data:`CASES` with Transformer Engine and with ``xcfg_kernels``; writes the results and this rank's
part of the gradients to ``FOLDER/RANK.npz``, and what ranks that do not fit together raise to ``FOLDER/RANK.json``.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from xcfg.errors import InvalidInput
from xcfg_kernels import ReductionSpec, even_shards
from xcfg_kernels import selected_logprob as ours
from xcfg_te import selected_logprob as theirs

CASES = [
    (vocab, rows, seed, dtype, scale)
    for seed, (vocab, rows, scale) in enumerate([(1024, 16, 4.0), (1000, 9, 4.0), (4096, 8, 30.0), (151936, 2, 4.0)])
    for dtype in (torch.float32, torch.bfloat16)
]
"""(vocabulary, rows, seed, dtype, size of the logits), on 1, 2 or 4 equal shards."""
BLOCKS = {1000: 50}
"""The width of a block of ``xcfg_kernels`` where its usual one does not divide the shards."""


def case(vocab: int, rows: int, seed: int, dtype: torch.dtype, scale: float):
    """Logits (rows, vocab), targets (rows,), the gradient of each logprob (rows,)."""
    random = torch.Generator().manual_seed(seed)
    logits = (torch.randn(rows, vocab, generator=random) * scale).to(dtype)
    targets = torch.randint(0, vocab, (rows,), generator=random)
    return logits, targets, torch.randn(rows, generator=random)


def results(rank: int, world: int):
    for number, (vocab, *rest) in enumerate(CASES):
        logits, targets, weights = case(vocab, *rest)
        sharding = even_shards(vocab_size=vocab, padded_vocab_size=vocab, tp_world=world, tp_rank=rank)
        columns = slice(sharding.start, sharding.start + sharding.columns)
        reduction = ReductionSpec(block=BLOCKS.get(vocab))
        scores = {
            "theirs": lambda own: theirs(own, targets, dist.group.WORLD, vocab_size=vocab),  # noqa: B023
            "ours": lambda own: ours(own, targets, sharding, dist.group.WORLD, reduction=reduction),  # noqa: B023
        }
        for name, score in scores.items():
            leaf = logits[:, columns].clone().requires_grad_()
            logprobs = score(leaf)
            (logprobs * weights).sum().backward()
            yield f"{number} {name}", logprobs.detach().numpy()
            yield f"{number} {name} gradient", leaf.grad.float().numpy()


def refusals(rank: int, world: int) -> dict[str, str]:
    """What each rank is told where Transformer Engine itself would go on and give wrong numbers."""
    targets = torch.tensor([1, 2])
    wide = torch.zeros(2, 12 if rank == 0 else 10)
    attempts = {
        "uneven": lambda: theirs(wide, targets, dist.group.WORLD, vocab_size=10 * world + 2),
        "padded": lambda: theirs(torch.zeros(2, 16), targets, dist.group.WORLD, vocab_size=15 * world),
        "rows": lambda: theirs(
            torch.zeros(2 + rank, 16), torch.ones(2 + rank).long(), dist.group.WORLD, vocab_size=16 * world
        ),
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
    np.savez(folder / f"{rank}.npz", **dict(results(rank, world)))
    (folder / f"{rank}.json").write_text(json.dumps(refusals(rank, world)))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

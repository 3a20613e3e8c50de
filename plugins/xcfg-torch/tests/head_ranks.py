"""One rank of a head that lies on several: ``head_ranks.py FOLDER RANK WORLD``.

Scores under every layout and padding with backends bound as a side run binds them; writes what each gives, and what the
kernel was handed, to ``FOLDER/RANK.npz``.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from xcfg.model.kernel import KernelRequest
from xcfg_kernels.deterministic import Deterministic
from xcfg_kernels.production import Production
from xcfg_torch.head import FULL_VOCABULARY, VOCAB_PARALLEL, HeadShare

VOCAB, ROWS = 500, 7
UNEVEN = [(0, 300), (300, 512)]
EVEN = [(0, 256), (256, 512)]


def case():
    """Logits (ROWS, 512), the columns from VOCAB on larger than any other; targets (ROWS,)."""
    random = torch.Generator().manual_seed(3)
    logits = torch.randn(ROWS, 512, generator=random) * 4
    logits[:, VOCAB:] = 20.0
    return logits, torch.randint(0, VOCAB, (ROWS,), generator=random)


def score(backend, options, share: HeadShare):
    logits, targets = case()
    start, end = share.bounds[share.rank]
    request = KernelRequest(
        operator="selected_logprob",
        device="cpu",
        dtype="float32",
        vocab_size=share.vocab_size,
        options=options,
        sharding=share.sharding,
    )
    with backend.bind(request) as bound:
        rows, beside = share.for_kernel(logits[:, start:end].contiguous())
        return bound(rows, targets, **beside).numpy(), rows.shape[1]


def main(folder: Path, rank: int, world: int) -> None:
    store = dist.FileStore(str(folder / "store"), world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=60))
    found = {}
    blocks, order_free = {"block": 16}, {"scheme": "order_free"}
    for name, backend, options, bounds, vocab, layout in [
        ("gathered", Production(), {}, UNEVEN, VOCAB, FULL_VOCABULARY),
        ("gathered, padding in", Production(), {}, UNEVEN, 512, FULL_VOCABULARY),
        ("gathered blocks", Deterministic(), blocks, EVEN, VOCAB, FULL_VOCABULARY),
        ("sharded blocks", Deterministic(), blocks, EVEN, VOCAB, VOCAB_PARALLEL),
        ("sharded blocks, padding in", Deterministic(), blocks, EVEN, 512, VOCAB_PARALLEL),
        ("sharded order free", Deterministic(), order_free, UNEVEN, VOCAB, VOCAB_PARALLEL),
    ]:
        share = HeadShare(group=dist.group.WORLD, rank=rank, bounds=bounds, vocab_size=vocab, layout=layout)
        found[name], found[f"{name} columns"] = score(backend, options, share)
    np.savez(folder / f"{rank}.npz", **found)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

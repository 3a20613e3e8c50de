"""Interpreted Triton kernels on small logits: ``triton_cases.py FILE`` under ``TRITON_INTERPRET=1`` writes an npz.

The interpreter must be chosen before anything imports Triton, so it has a process of its own.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import torch

from xcfg_kernels import ReductionSpec, selected_logprob_and_lse, simulated_logprob_and_lse
from xcfg_kernels.capability import Implementation
from xcfg_kernels.layout import Layout
from xcfg_kernels.local import local_partials

CASES = runpy.run_path(str(Path(__file__).with_name("logprob_cases.py")))
SIZES = {"padded": (1000, 1024, 128), "odd": (1001, 1024, 128), "wide": (9000, 16384, 4096)}
"""Vocabulary, padded vocabulary, block. Blocks of 4096 are walked in two tiles."""
WORLDS = {"padded": (1, 2, 4, 8), "odd": (1, 4), "wide": (1, 2)}
ROWS = 3


def given(name: str, dtype: torch.dtype):
    vocab, padded, _ = SIZES[name]
    logits, targets, weights = CASES["case"](21, ROWS, vocab, padded, dtype)
    logits[1, :600] = -torch.inf
    targets[1] = 700
    return logits, targets, weights


def edge():
    """A row of minus infinities, one with NaN, one with plus infinity, one that is ignored, in blocks of 4096."""
    logits = given("wide", torch.float32)[0]
    logits[0], logits[1, 10], logits[2, 4000] = -torch.inf, torch.nan, torch.inf
    return torch.cat([logits, logits[:1].abs().nan_to_num()]), torch.tensor([5, 5, 5, -100])


def outcomes(name: str, dtype: torch.dtype):
    """Bits of what each degree gives, of the first row alone, and of the partials of one rank."""
    vocab, padded, block = SIZES[name]
    logits, targets, weights = given(name, dtype)
    options = {"reduction": ReductionSpec(block=block), "implementation": "triton"}
    for world in WORLDS[name]:
        sharding = CASES["even"](vocab, padded, world)
        run = lambda leaves, at=sharding: simulated_logprob_and_lse(leaves, targets, at, **options)  # noqa: E731
        found = CASES["outcome"](run, list(logits.chunk(world, 1)), weights, vocab)
        yield from zip((f"{part} {world}" for part in ("logprob", "lse", "gradient")), found, strict=True)
    run = lambda leaves: selected_logprob_and_lse(leaves[0], targets[:1], **options)  # noqa: E731
    found = CASES["outcome"](run, [logits[:1, :vocab]], weights[:, :1], vocab)
    yield from zip((f"{part} alone" for part in ("logprob", "lse", "gradient")), found, strict=True)
    layout = Layout(sharding=CASES["even"](vocab, padded, 1), reduction=options["reduction"])
    (maxima, sums), wanted = local_partials(Implementation.TRITON, logits, targets, layout)
    yield from (("maxima", CASES["bits"](maxima)), ("sums", CASES["bits"](sums)), ("wanted", CASES["bits"](wanted)))


def main(path: Path) -> None:
    torch.set_num_threads(1)
    found = {
        f"{name} {dtype} {part}": values.numpy()
        for name in SIZES
        for dtype in (CASES["DTYPES"] if name == "padded" else CASES["DTYPES"][:1])
        for part, values in outcomes(name, dtype)
    }
    logits, targets = edge()
    options = {"reduction": ReductionSpec(block=4096), "implementation": "triton"}
    logprobs, lse = simulated_logprob_and_lse([logits], targets, CASES["even"](9000, 16384, 1), **options)
    np.savez(path, **found, edge_logprob=logprobs.numpy(), edge_lse=lse.numpy())


if __name__ == "__main__":
    main(Path(sys.argv[1]))

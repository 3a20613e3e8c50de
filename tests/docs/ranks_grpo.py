"""The Python of the page on the GRPO loss, on two context parallel ranks of each of four data parallel ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from snippets import blocks

SEQUENCES, WIDTH, MICROBATCH = 64, 256, 4
FIELDS = ("new", "mask", "advantages", "old", "reference")


def whole() -> dict[str, np.ndarray]:
    """The batch of all ranks."""
    draws = np.random.default_rng(3)
    new = -draws.exponential(1.0, (SEQUENCES, WIDTH)).astype(np.float32)
    near = [np.minimum(new + draws.normal(0, 0.2, new.shape).astype(np.float32), 0) for _ in range(2)]
    lengths = draws.integers(1, WIDTH, SEQUENCES)
    return {
        "new": new, "mask": np.arange(WIDTH) < lengths[:, None],
        "advantages": draws.normal(0, 1, SEQUENCES).astype(np.float32), "old": near[0], "reference": near[1],
    }  # fmt: skip


def expected(batch: dict[str, np.ndarray]) -> float:
    """The formulas of the page in float64: the mean over active tokens, clip (0.2, 0.28), k3 with weight 0.001."""
    new, old, reference = (batch[name].astype(np.float64) for name in ("new", "old", "reference"))
    ratio, advantage = np.exp(new - old), batch["advantages"].astype(np.float64)[:, None]
    policy = -np.minimum(ratio * advantage, np.clip(ratio, 1 - 0.2, 1 + 0.28) * advantage)
    d = reference - new
    return float((policy + 0.001 * (np.exp(d) - 1 - d))[batch["mask"]].mean())


def grpo(page: Path, rank: int, world: int) -> None:
    """``grpo_loss`` against the formulas, and the loop of one backward pass a microbatch against its very bits."""
    from xcfg_kernels.grpo import even_layout

    pairs = [dist.new_group([first, first + 1]) for first in range(0, world, 2)]
    fours = [dist.new_group(list(range(first, world, 2))) for first in range(2)]
    dp_rank, cp_rank = divmod(rank, 2)
    layout = even_layout(sequences=SEQUENCES, width=WIDTH, microbatch=MICROBATCH, dp=(dp_rank, 4), cp=(cp_rank, 2))
    batch, columns = whole(), list(layout.positions[cp_rank])
    leaves: list[torch.Tensor] = []

    def microbatches() -> list[tuple[torch.Tensor, ...]]:
        made = []
        for rows in layout.own:
            cut = {name: batch[name][list(rows)] for name in FIELDS}
            parts = {name: torch.tensor(v if v.ndim == 1 else v[:, columns]) for name, v in cut.items()}
            leaves.append(parts["new"].requires_grad_())
            made.append(tuple(parts[name] for name in FIELDS))
        return made

    first, second = (block.text for block in blocks(page) if block.language == "python")
    assert "width=4096" in first
    first = first.replace("width=4096", f"width={WIDTH}")  # a sixteenth, for the time it takes
    names = {"dp_rank": dp_rank, "cp_rank": cp_rank, "cp_group": pairs[rank // 2], "dp_group": fours[cp_rank]}
    exec(first, names := {**names, "microbatches": microbatches()})
    loss = names["found"].loss.detach()
    np.testing.assert_allclose(float(loss), expected(batch), rtol=1e-5)
    gradients = [leaf.grad.clone() for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    exec(second, names)
    assert torch.equal(names["loss"], loss)
    assert all(torch.equal(leaf.grad, kept) for leaf, kept in zip(leaves, gradients, strict=True))

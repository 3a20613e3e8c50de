"""The Python of the page on training loops: the numbers are worked out by hand."""

from __future__ import annotations

import torch
import torch.distributed as dist

from .bench import Bench

ROLLOUT = [[-0.5, -1.0, -9.0], [-2.0, -9.0, -9.0]]
TRAINING = [[-0.5, -1.25, -1.0], [-2.0, -1.0, -1.0]]
"""One active token is a quarter off; what the mask leaves out is far off and must not count."""
MASK = [[1, 1, 0], [1, 0, 0]]


def training_loop(bench: Bench) -> None:
    import xcfg_torch

    assert bench.run()["compare_logprobs"] is xcfg_torch.compare_logprobs
    _grpo_step(bench)
    _layouts(bench)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        names = {"rollout": torch.tensor(ROLLOUT), "train": torch.tensor(TRAINING), "mask": torch.tensor(MASK)}
        found = bench.run(**names, data_parallel_group=dist.group.WORLD)["found"]
    finally:
        dist.destroy_process_group()
    assert (found.status.value, found.metrics["max_abs_dlogp"], found.active_tokens) == ("fail", 0.25, 3)


def _grpo_step(bench: Bench) -> None:
    logged: dict[str, float] = {}
    batch = {
        "rollout_log_probs": torch.tensor(ROLLOUT),
        "old_log_probs": torch.tensor(TRAINING),
        "response_mask": torch.tensor(MASK),
        "responses": torch.tensor([[5, 6, 0], [7, 0, 0]]),
    }
    found = bench.run(
        batch=batch, samples=[("a", 0), ("a", 1)], log=lambda values, step: logged.update(values, step=step), step=4
    )["found"]
    assert (found.status.value, found.worst.token, found.worst.position) == ("fail", 6, 1)
    assert found.worst.sequence == "a sample 0"
    assert (logged["xcfg/max_abs_dlogp"], logged["step"]) == (0.25, 4)


def _layouts(bench: Bench) -> None:
    """The block shows two calls and keeps neither, so what they return is kept here."""
    kept = []
    real = bench.names["compare_logprobs"]
    flat = {"flat_rollout": torch.tensor([-0.5, -1.0, -2.0]), "flat_train": torch.tensor([-0.5, -1.25, -2.0])}
    rows = [
        [torch.tensor(row[: sum(mask)]) for row, mask in zip(side, MASK, strict=True)] for side in (ROLLOUT, TRAINING)
    ]
    bench.names["compare_logprobs"] = lambda *args, **options: kept.append(real(*args, **options))
    bench.run(**flat, lengths=torch.tensor([2, 1]), rollout=rows[0], train=rows[1])
    bench.names["compare_logprobs"] = real
    assert [(item.metrics["max_abs_dlogp"], item.active_tokens) for item in kept] == [(0.25, 3), (0.25, 3)]

"""The Triton kernels on one CUDA device beside others' in the same run, against the copy bandwidth. Prints.

About a minute and 8 GB of device memory. Needs CUDA; without it the script says so and measures nothing.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable, Iterator

import torch

VOCAB, ROWS = 151936, 4096
ROUNDS = 30

Run = Callable[[], object]


def seconds(candidates: dict[str, Run]) -> dict[str, float]:
    """Median device time of each, in turns, after three rounds that are thrown away."""
    found: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(ROUNDS + 3):
        for name, run in candidates.items():
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            run()
            ended.record()
            ended.synchronize()
            if number >= 3:
                found[name].append(began.elapsed_time(ended) / 1e3)
    return {name: statistics.median(values) for name, values in found.items()}


def ours(logits: torch.Tensor, targets: torch.Tensor) -> Iterator[tuple[str, Run]]:
    """The fused path: blocks that fit unpadded shards, then wider aligned ones; and the partials alone."""
    from xcfg_kernels import ReductionSpec, selected_logprob, unsharded
    from xcfg_kernels.layout import Layout
    from xcfg_kernels.triton_kernels import partials_and_target

    for block in (1187, 128, 1024, 4096):
        reduction = ReductionSpec(block=block)
        layout = Layout(sharding=unsharded(VOCAB), reduction=reduction)
        yield f"triton partials, blocks of {block}", lambda at=layout: partials_and_target(logits, targets, at)
        yield (
            f"triton, blocks of {block}",
            lambda by=reduction: selected_logprob(logits, targets, reduction=by, implementation="triton"),
        )


def others(logits: torch.Tensor, targets: torch.Tensor) -> Iterator[tuple[str, Run]]:
    """Implementations of other projects; what is not installed is named and left out."""
    yield (
        "torch.log_softmax, gather",
        lambda: torch.log_softmax(logits.float(), dim=-1).gather(1, targets[:, None])[:, 0],
    )
    compiled = torch.compile(lambda x, t: torch.nn.functional.cross_entropy(x.float(), t, reduction="none"))
    yield "compiled cross entropy", lambda: compiled(logits, targets)
    if importlib.util.find_spec("liger_kernel"):
        from liger_kernel.ops.cross_entropy import cross_entropy_forward

        def liger() -> object:  # writes the gradient over its input, so it gets a copy, which is in its time
            return cross_entropy_forward(logits.clone(), targets, None, -100, 0.0, 0.0, "none", None, False)

        yield "Liger cross entropy, with a copy of the logits", liger
    else:
        print("Liger is not installed: left out")
    if importlib.util.find_spec("transformer_engine"):
        from transformer_engine.pytorch.cross_entropy import parallel_cross_entropy

        yield (
            "Transformer Engine cross entropy, with a copy of the logits",
            lambda: parallel_cross_entropy(logits.clone()[None], targets[None]),
        )
    else:
        print("Transformer Engine is not installed: left out")


def main() -> None:
    """Print the time of each and the bandwidth of one read of the logits in it."""
    if not torch.cuda.is_available():
        print("kernels on a GPU: needs CUDA, torch sees no device; nothing measured")
        return
    logits = torch.randn(ROWS, VOCAB, device="cuda", dtype=torch.bfloat16).mul_(4)
    targets = torch.randint(0, VOCAB, (ROWS,), device="cuda")
    copied, size = torch.empty_like(logits), logits.numel() * logits.element_size()
    with torch.no_grad():
        runs = {"copy": lambda: copied.copy_(logits), **dict(ours(logits, targets)), **dict(others(logits, targets))}
        found = seconds(runs)
    bandwidth = 2 * size / found["copy"]
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: copy {bandwidth / 1e9:.0f} GB/s, read and write")
    for name, taken in found.items():
        share = size / taken / bandwidth
        print(f"  {name}: {taken * 1e3:.3f} ms, one read of the logits at {share:.0%} of the copy bandwidth")


if __name__ == "__main__":
    main()

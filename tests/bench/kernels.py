"""Selected-token logprobs of the kernels against ``torch.log_softmax`` and a gather, on the CPU. Prints, never asserts.

Every ratio is the median over pairs of one run: the two candidates of a pair take turns, so that a busy machine slows
both. Seconds of CPU time stand beside those of the wall, which another process on the machine can stretch.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

VOCAB, ROWS, BLOCK = 151936, 128, 1187
PAIRS = 21
DEGREES = (2, 4, 8)

Call = Callable[[], object]


def timed(candidates: Mapping[str, Call], pairs: int = PAIRS) -> dict[str, list[tuple[float, float]]]:
    """(Wall, CPU) seconds of each candidate in each round, after two rounds that are thrown away."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    for number in range(pairs + 2):
        for name, call in candidates.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            taken = time.perf_counter() - wall, time.process_time() - cpu
            if number >= 2:
                found[name].append(taken)
    return found


def median(values: list[tuple[float, float]], clock: int = 0) -> float:
    """Milliseconds; clock 0 is the wall, 1 the CPU."""
    return statistics.median(value[clock] for value in values) * 1e3


def ratio(slow: list[tuple[float, float]], fast: list[tuple[float, float]], clock: int = 0) -> float:
    """The median of how much longer the first took, pair by pair."""
    return statistics.median(left[clock] / right[clock] for left, right in zip(slow, fast, strict=True))


def given(rows: int = ROWS, vocab: int = VOCAB):
    """bf16 logits (rows, vocab) and targets."""
    import torch

    random = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, vocab, generator=random).mul_(4).bfloat16()
    return logits, torch.randint(0, vocab, (rows,), generator=random)


def production(logits, targets):
    """What training frameworks run."""
    import torch

    return torch.log_softmax(logits.float(), dim=-1).gather(1, targets[:, None])[:, 0]


def paths() -> dict[str, Callable]:
    """The candidates: (logits, targets) to logprobs."""
    from xcfg_kernels import ReductionSpec, Scheme, selected_logprob

    canonical, order_free = ReductionSpec(block=BLOCK), ReductionSpec(scheme=Scheme.ORDER_FREE)
    return {
        "production": production,
        "canonical_blocks eager": lambda *case: selected_logprob(*case, reduction=canonical),
        "canonical_blocks compiled": lambda *case: selected_logprob(
            *case, reduction=canonical, implementation="compiled"
        ),
        "order_free eager": lambda *case: selected_logprob(*case, reduction=order_free),
    }


def forward() -> None:
    """The forward pass of 128 rows."""
    case = given()
    found = timed({name: partial(path, *case) for name, path in paths().items()})
    slow = found.pop("production")
    print(f"{ROWS} x {VOCAB} bf16: production {median(slow):.1f} ms ({median(slow, 1):.1f} CPU)")
    for name, fast in found.items():
        print(
            f"  {name}: {median(fast):.1f} ms ({median(fast, 1):.1f} CPU), faster than production by "
            f"{ratio(slow, fast):.1f} (CPU time {ratio(slow, fast, 1):.1f})"
        )


def both_passes() -> None:
    """Forward and gradient."""
    logits, targets = given()
    logits.requires_grad_()

    def trained(path: Callable) -> None:
        logits.grad = None
        path(logits, targets).sum().backward()

    found = timed({name: partial(trained, path) for name, path in paths().items()}, pairs=7)
    slow = found.pop("production")
    print(f"forward and gradient: production {median(slow):.0f} ms ({median(slow, 1):.0f} CPU)")
    for name, fast in found.items():
        print(
            f"  {name}: {median(fast):.0f} ms, faster by {ratio(slow, fast):.1f} (CPU time {ratio(slow, fast, 1):.1f})"
        )


def growth() -> None:
    """Time for each million logits at three numbers of rows and three vocabularies."""
    sizes = [(64, VOCAB), (128, VOCAB), (256, VOCAB), (128, VOCAB // 4), (128, VOCAB // 2)]
    cases = [given(*size) for size in sizes]
    for name, path in list(paths().items())[1:]:
        found = timed({str(size): partial(path, *case) for size, case in zip(sizes, cases, strict=True)}, pairs=9)
        taken = {size: median(found[str(size)]) / size[0] / size[1] * 1e6 for size in sizes}
        each = [f"{rows} x {vocab}: {value:.2f}" for (rows, vocab), value in taken.items()]
        print(f"{name}, ms for a million logits: {'; '.join(each)}")


def merging() -> None:
    """What one of 2, 4, 8 ranks does beside its local pass: packing and merging, without the network's share."""
    from xcfg_kernels import ReductionSpec, even_shards
    from xcfg_kernels.capability import Implementation
    from xcfg_kernels.exchange import in_process, with_header
    from xcfg_kernels.forward import merge_ranks
    from xcfg_kernels.layout import Layout, agreement
    from xcfg_kernels.local import local_partials

    logits, targets = given()
    for implementation in (Implementation.EAGER, Implementation.COMPILED):
        for world in DEGREES:
            shardings = [
                even_shards(vocab_size=VOCAB, padded_vocab_size=VOCAB, tp_world=world, tp_rank=rank)
                for rank in range(world)
            ]
            ranks = [Layout(sharding=sharding, reduction=ReductionSpec(block=BLOCK)) for sharding in shardings]
            shards = [shard.contiguous() for shard in logits.chunk(world, 1)]
            agreed = agreement(ranks[0], implementation, str(logits.dtype))
            local = [
                partial(local_partials, implementation, shard, targets, rank)
                for shard, rank in zip(shards, ranks, strict=True)
            ]
            parts = [own() for own in local]
            carried = [with_header([maxima.t(), sums.t(), wanted[None]], agreed) for (maxima, sums), wanted in parts]
            merge = partial(merge_ranks, parts[:1], targets, ranks[0], agreed, partial(_arrived, in_process(carried)))
            found = timed({"local": local[0], "merge": merge})
            print(
                f"{implementation}, {world} ranks: local pass of a rank {median(found['local']):.2f} ms, merge "
                f"{median(found['merge']):.2f} ms, {100 / ratio(found['local'], found['merge']):.1f}% of it "
                f"(CPU time {100 / ratio(found['local'], found['merge'], 1):.1f}%)"
            )


def _arrived(gathered: object, _: object) -> object:
    """An exchange that has taken place."""
    return gathered


def memory(name: str) -> None:
    """Peak resident memory of one forward pass beyond its inputs, in a process that has run a small one (Linux)."""
    from recorded import peak_mb

    path, case = paths()[name], given()
    for rows in (2, 3):
        path(case[0][:rows], case[1][:rows])
    before = peak_mb(clear=True)
    path(*case)
    extra, whole = peak_mb() - before, ROWS * VOCAB * 4 / 1e6
    share = f"1/{whole / extra:.1f}" if extra >= 0.1 else "less than 1/700"
    print(f"{name}: {extra:.1f} MB beyond the logits, {share} of their {whole:.0f} MB in float32")


def main() -> None:
    """Print every figure of the CPU, then those of a GPU where there is one."""
    import torch

    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}")
    with torch.no_grad():
        forward()
        merging()
        growth()
    both_passes()
    sys.stdout.flush()
    for name in paths():
        subprocess.run([sys.executable, str(Path(__file__)), name], check=True)
    subprocess.run([sys.executable, str(Path(__file__).with_name("kernels_gpu.py"))], check=True)


if __name__ == "__main__":
    memory(sys.argv[1]) if len(sys.argv) > 1 else main()

"""Planning: covering arrays beside allpairspy, 100,000 cases beside a bare product, a million one by one. Prints."""

from __future__ import annotations

import gc
import hashlib
import itertools
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from allpairspy import AllPairs
from attrs import evolve

from xcfg.errors import InvalidInput
from xcfg.model.experiment import Experiment, Mode
from xcfg.model.knob import Constraint
from xcfg.planner.build import build_plan, plan_cases
from xcfg.planner.load import load_experiment
from xcfg.planner.pairwise import covering_array
from xcfg.plugin.registry import load_registry

EXAMPLE = Path(__file__).parents[2] / "docs/examples/qwen3-tiny-tp2-fsdp.yaml"
MODELS = {
    "3^4": [3] * 4,
    "3^13": [3] * 13,
    "4^15 3^17 2^29": [4] * 15 + [3] * 17 + [2] * 29,
    "4^1 3^39 2^35": [4] + [3] * 39 + [2] * 35,
    "2^100": [2] * 100,
    "10^20": [10] * 20,
}
ROUNDS = 3

AXES: dict[str, tuple[Any, ...]] = {
    "rollout.dtype": ("bfloat16", "float32", "float16"),
    "training.compute_dtype": ("bfloat16", "float32", "float16"),
    "rollout.tensor_parallel_size": (1, 2, 4),
    "rollout.scoring_path": ("forced_decode", "prefill"),
    "execution.prefix_cache": (False, True),
    "training.sharding": ("full_shard", "hybrid"),
    "training.world_size": (2, 4, 8),
    "logp.backend": ("production", "reference"),
    "batch.size": (16, 8, 4, 1),
    "layout.padding_side": ("right", "left"),
    "training.attention_backend": ("sdpa", "eager"),
    "rollout.kv_cache_dtype": (None, "bfloat16", "float8_e4m3fn"),
    "training.output_dtype": (None, "float32"),
}
"""124,416 cases, spread over both sides."""

CONSTRAINTS = (
    Constraint(
        reason="float16 on both sides",
        when={"rollout.dtype": ("float16",)},
        require={"training.compute_dtype": ("float16",)},
    ),
    Constraint(
        reason="four ranks want large batches",
        when={"rollout.tensor_parallel_size": (4,)},
        require={"batch.size": (16, 8)},
    ),
    Constraint(
        reason="a float8 cache under bfloat16",
        when={"rollout.kv_cache_dtype": ("float8_e4m3fn",)},
        require={"rollout.dtype": ("bfloat16",)},
    ),
)


def covering() -> None:
    """Rows and seconds of six standard models, beside allpairspy."""
    for name, sizes in MODELS.items():
        domains = [list(range(size)) for size in sizes]
        began = time.perf_counter()
        rows = len(covering_array(domains))
        middle = time.perf_counter()
        theirs = len(list(AllPairs(domains)))
        ended = time.perf_counter()
        print(
            f"covering array {name}: {rows} rows in {middle - began:.2f} s, "
            f"allpairspy {theirs} rows in {ended - middle:.2f} s"
        )


def experiment(axes: Mapping[str, Sequence[Any]]) -> tuple[Experiment, dict[str, Any]]:
    """The example with other axes, as a product, and how it is planned: with every installed plugin and its vetoes."""
    registry = load_registry()
    loaded = load_experiment(EXAMPLE, ["cases=[]", "slices={}"], registry=registry)
    made = evolve(loaded.experiment, axes=axes, constraints=CONSTRAINTS, mode=Mode.PRODUCT)
    return made, {"root": loaded.root, "registry": registry}


def bare() -> Iterator[str]:
    """What the axes cost by themselves: every combination and a hash of it."""
    for row in itertools.product(*AXES.values()):
        yield hashlib.sha256(repr(row).encode()).hexdigest()


def planned() -> None:
    """A plan of 124,416 cases, with constraints, capabilities, vetoes and ids, against the bare product; CPU time."""
    made, options = experiment(AXES)
    ratios, plain, full = [], [], []
    for _ in range(ROUNDS):
        began = time.process_time()
        number = sum(1 for _ in bare())
        middle = time.process_time()
        plan = build_plan(made, **options, max_cases=1_000_000)
        ended = time.process_time()
        plain.append((middle - began) / number)
        full.append((ended - middle) / len(plan.cases))
        ratios.append(full[-1] / plain[-1])
        runnable = len(plan.runnable)
        del plan
        gc.collect()
    print(
        f"planning {number} cases ({runnable} can run): {statistics.median(full) * 1e6:.0f} us a case, "
        f"bare product and sha256 {statistics.median(plain) * 1e6:.2f} us, "
        f"ratio {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})"
    )


def peak_mb(clear: bool = False) -> float:
    """Peak resident memory of this process in MB (Linux), since it was last cleared."""
    if clear:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def lazy() -> None:
    """A million cases made one after the other: time, and the growth of the peak memory after the first thousand."""
    made, options = experiment({**AXES, "execution.threads": tuple(range(1, 10))})
    cases = plan_cases(made, **options)
    for _ in itertools.islice(cases, 1000):
        pass
    before, began = peak_mb(clear=True), time.perf_counter()
    number = 1000 + sum(1 for _ in cases)
    seconds = time.perf_counter() - began
    print(f"one by one: {number} cases in {seconds:.0f} s, peak memory {before:.0f} MB, then {peak_mb():.0f} MB")


def refused() -> None:
    """The time it takes to refuse more than ten million cases, the file read and the number known."""
    made, options = experiment({**AXES, "execution.threads": tuple(range(1, 101))})
    began = time.perf_counter()
    try:
        build_plan(made, **options)
    except InvalidInput as error:
        print(f"refused in {(time.perf_counter() - began) * 1e3:.0f} ms: {error}")


def main() -> None:
    """Print every figure."""
    covering()
    planned()
    refused()
    lazy()


if __name__ == "__main__":
    main()

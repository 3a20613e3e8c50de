"""Comparing tokens in memory against the plain numpy expression, and streaming them from Parquet. Prints figures."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TOKENS = 10_000_000
STREAMED = 100_000_000
ROW = 1000
ROUNDS = 5
LOW, HIGH = 0.8, 1.2


def logprobs(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rollout and training logprobs of ``count`` tokens about as far apart as bfloat16 engines are."""
    random = np.random.default_rng(seed)
    rollout = -random.standard_exponential(count, dtype=np.float32)
    train = rollout + np.float32(0.01) * random.standard_normal(count, dtype=np.float32)
    return rollout, np.minimum(train, np.float32(0.0))


def plain(rollout: np.ndarray, train: np.ndarray, lengths: np.ndarray) -> dict[str, float]:
    """Every metric of :mod:`xcfg.comparator.drift` as its definition reads in numpy, each intermediate value once."""
    d = train.astype(np.float64) - rollout
    a, ratio, starts = np.abs(d), np.exp(d), np.cumsum(lengths) - lengths
    gain, loss = np.expm1(d), np.expm1(-d)
    sums = np.abs(np.add.reduceat(d, starts))
    position = np.arange(len(d)) - np.repeat(starts, lengths)
    p95, p99 = np.percentile(a, (95.0, 99.0))
    return {
        "max_abs_dlogp": a.max(),
        "mean_abs_dlogp": a.mean(),
        "p95_abs_dlogp": p95,
        "p99_abs_dlogp": p99,
        "ratio0_min": ratio.min(),
        "ratio0_mean": ratio.mean(),
        "ratio0_max": ratio.max(),
        "clipfrac0": np.mean((ratio < LOW) | (ratio > HIGH)),
        "approx_kl0": np.mean(gain - d),
        "signed_mean_dlogp": d.mean(),
        "std_dlogp": d.std(),
        "k1": np.mean(-d),
        "k1_reverse": np.mean(d),
        "k3": np.mean(gain - d),
        "k3_reverse": np.mean(loss + d),
        "token_mult_prob_error": np.mean(np.exp(a)),
        "chi2_token": np.mean(np.square(ratio)) - 1.0,
        "ess": ratio.sum() ** 2 / (len(d) * np.square(ratio).sum()),
        "frac_unequal": np.mean(rollout.view(np.uint32) != train.view(np.uint32)),
        "frac_gt_ln2": np.mean(a > np.log(2.0)),
        "sequence_max_abs_mean": np.maximum.reduceat(a, starts).mean(),
        "sequence_mean_abs_max": (np.add.reduceat(a, starts) / lengths).max(),
        "sequence_sum_abs_max": sums.max(),
        "sequence_sum_abs_mean": sums.mean(),
        "corr_abs_position": np.corrcoef(a, position)[0, 1],
        "corr_abs_logp": np.corrcoef(a, rollout)[0, 1],
        "corr_abs_length": np.corrcoef(a, np.repeat(lengths, lengths))[0, 1],
    }


def peak_mb(clear: bool = False) -> float:
    """Peak resident memory of this process in MB (Linux), since it was last cleared."""
    if clear:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def in_memory() -> None:
    """The metrics of 10 million tokens, in alternating rounds of one process."""
    import xcfg

    random = np.random.default_rng(0)
    lengths = random.integers(ROW // 2, ROW * 3 // 2, size=2 * TOKENS // ROW)
    lengths = lengths[np.cumsum(lengths) <= TOKENS]
    rollout, train = logprobs(1, int(lengths.sum()))
    megabytes = (rollout.nbytes + train.nbytes) / 1e6
    before = peak_mb(clear=True)
    seconds: dict[str, list[float]] = {"xcfg": [], "numpy": []}
    began = time.perf_counter()
    found = xcfg.compare_logprobs(rollout, train, dtype="bfloat16", lengths=lengths)
    seconds["xcfg"].append(time.perf_counter() - began)
    extra = peak_mb() - before
    for _ in range(ROUNDS):
        began = time.perf_counter()
        expected = plain(rollout, train, lengths)
        seconds["numpy"].append(time.perf_counter() - began)
        began = time.perf_counter()
        found = xcfg.compare_logprobs(rollout, train, dtype="bfloat16", lengths=lengths)
        seconds["xcfg"].append(time.perf_counter() - began)
    worst = max(abs(found.metrics[name] - value) / max(abs(value), 1e-12) for name, value in expected.items())
    mine, theirs = (statistics.median(seconds[name]) for name in ("xcfg", "numpy"))
    print(
        f"{len(rollout)} tokens, {len(expected)} metrics and the verdict: {mine:.2f} s; plain numpy {theirs:.2f} s; "
        f"ratio {mine / theirs:.2f}; largest relative difference of a metric {worst:.1e}"
    )
    times = (megabytes + extra) / megabytes
    print(f"memory: input {megabytes:.0f} MB, {extra:.0f} MB above it: {times:.2f} times the input")


def write_parquet(folder: Path, tokens: int) -> None:
    """Two files of records, the training side's in another order of sequences."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 1000
    schema = pa.schema(
        [("id", pa.string()), ("response_ids", pa.list_(pa.int32())), ("logprobs", pa.list_(pa.float32()))]
    )
    groups = tokens // (rows * ROW)
    for side, name in enumerate(("rollout", "training")):
        with pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="none") as out:
            for group in range(groups) if not side else reversed(range(groups)):
                both = logprobs(group, rows * ROW)
                ids = np.random.default_rng(group).integers(0, 150_000, rows * ROW, dtype=np.int32)
                offsets = np.arange(0, rows * ROW + 1, ROW, dtype=np.int32)
                columns = [pa.array([f"sequence-{group * rows + row:08d}" for row in range(rows)])]
                columns += [pa.ListArray.from_arrays(offsets, pa.array(values)) for values in (ids, both[side])]
                out.write_table(pa.Table.from_arrays(columns, schema=schema))


def streamed() -> None:
    """``xcfg compare`` of 10 and of 100 million tokens in Parquet: the peak does not follow the number of tokens."""
    command = [
        "import sys; from xcfg.cli.entry import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')), file=sys.stderr)"
    ]
    for tokens in (STREAMED // 10, STREAMED):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            write_parquet(folder, tokens)
            size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
            files = [str(folder / "rollout.parquet"), str(folder / "training.parquet")]
            began = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", *command, "-q", "compare", *files, "--dtype", "bfloat16", "--json"],
                capture_output=True,
                text=True,
                check=False,
            )
            wall = time.perf_counter() - began
        found = json.loads(done.stdout)
        peak = int(done.stderr.split()[-2]) * 1024 / 1e6
        print(
            f"streamed {found['active_tokens']} tokens from Parquet ({size:.0f} MB): {found['status']}, {wall:.0f} s, "
            f"peak {peak:.0f} MB"
        )


if __name__ == "__main__":
    in_memory()
    streamed()

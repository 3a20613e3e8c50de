"""An oracle in float64 written from the definitions, batches in every layout, and processes played by threads."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

LIMITS = {"float32": 2.0**-10, "float16": 2.0**-6, "bfloat16": 2.0**-3}


def wide(values):
    return np.asarray(values).astype(np.float64)


def pearson(x, y):
    x, y = x - x.mean(), y - y.mean()
    with np.errstate(invalid="ignore"):
        return (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum())


def measured(rollout, training, masks, interval=(0.75, 1.25)):
    """Every metric of lists of rows, each an array or list; ``masks`` likewise, or None. Values must vary."""
    masks = [np.ones(len(row), bool) for row in rollout] if masks is None else [np.asarray(m, bool) for m in masks]
    rows = [
        (wide(r)[m], wide(t)[m], np.flatnonzero(m)) for r, t, m in zip(rollout, training, masks, strict=True) if m.any()
    ]
    logp = np.concatenate([r for r, _, _ in rows])
    d = np.concatenate([t - r for r, t, _ in rows])
    size, ratio = np.abs(d), np.exp(d)
    position = np.concatenate([p for _, _, p in rows]).astype(np.float64)
    length = np.concatenate([np.full(len(p), float(len(p))) for _, _, p in rows])
    sums = np.array([abs((t - r).sum()) for r, t, _ in rows])
    low, high = interval
    found = {
        "max_abs_dlogp": size.max(),
        "mean_abs_dlogp": size.mean(),
        "p95_abs_dlogp": np.percentile(size, 95),
        "p99_abs_dlogp": np.percentile(size, 99),
        "ratio0_min": ratio.min(),
        "ratio0_mean": ratio.mean(),
        "ratio0_max": ratio.max(),
        "clipfrac0": np.mean((ratio < low) | (ratio > high)),
        "approx_kl0": np.mean(np.expm1(d) - d),
        "signed_mean_dlogp": d.mean(),
        "std_dlogp": d.std(),
        "k1": -d.mean(),
        "k1_reverse": d.mean(),
        "k3": np.mean(np.expm1(d) - d),
        "k3_reverse": np.mean(np.expm1(-d) + d),
        "token_mult_prob_error": np.exp(size).mean(),
        "chi2_token": np.expm1(2 * d).mean(),
        "ess": ratio.sum() ** 2 / (len(d) * (ratio**2).sum()),
        "frac_unequal": np.mean(d != 0),
        "frac_gt_ln2": np.mean(size > np.log(2)),
        "sequence_max_abs_mean": np.mean([np.abs(t - r).max() for r, t, _ in rows]),
        "sequence_mean_abs_max": max(np.abs(t - r).mean() for r, t, _ in rows),
        "sequence_sum_abs_max": sums.max(),
        "sequence_sum_abs_mean": sums.mean(),
        "corr_abs_position": pearson(position, size),
        "corr_abs_logp": pearson(logp, size),
        "corr_abs_length": pearson(length, size),
    }
    return {name: float(value) for name, value in found.items() if np.isfinite(value)}


EXACT = ("max_abs_dlogp", "p95_abs_dlogp", "p99_abs_dlogp", "frac_unequal", "frac_gt_ln2", "clipfrac0")
"""Metrics without a sum that could round: maxima, order statistics, fractions of counts."""


def same_metrics(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == (value if name in EXACT else pytest.approx(value, rel=1e-9, abs=1e-12)), name


class Threads:
    """Participants of an exchange, one a thread; whoever gathers waits for all."""

    def __init__(self, world):
        self.world, self.slots, self.barrier = world, [None] * world, threading.Barrier(world, timeout=20)

    def of(self, rank):
        return _Participant(self, rank)

    def run(self, call):
        """``call(rank, exchange)`` on every rank: what each returned or raised."""

        def one(rank):
            try:
                return call(rank, self.of(rank))
            except Exception as error:
                return error

        with ThreadPoolExecutor(self.world) as pool:
            return list(pool.map(one, range(self.world)))


class _Participant:
    def __init__(self, threads, rank):
        self.threads, self.rank = threads, rank

    def gather(self, values):
        assert values.dtype == np.float64 and values.ndim == 1
        self.threads.slots[self.rank] = values.copy()
        self.threads.barrier.wait()
        found = list(self.threads.slots)
        self.threads.barrier.wait()
        return found


def ragged_batch(seed=0, rows=7, longest=40, drift=0.01, dtype=np.float32):
    """Lists of rollout rows, training rows and masks: some rows empty, some without an active token."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(6, longest, rows)
    lengths[[1, 4]] = 0
    rollout = [-rng.exponential(1.0, n).astype(dtype) - dtype(0.5) for n in lengths]
    training = [np.minimum(row + rng.normal(0, drift, len(row)), 0).astype(dtype) for row in rollout]
    masks = [rng.random(n) < 0.7 for n in lengths]
    masks[2][:] = False
    return rollout, training, masks


def padded_batch(rows, fill, side="right", width=50):
    """(B, L) of rows, padded on one side with ``fill``."""
    out = np.full((len(rows), width), fill, dtype=rows[0].dtype)
    for target, row in zip(out, rows, strict=True):
        place = slice(0, len(row)) if side == "right" else slice(width - len(row), width)
        target[place] = row
    return out


@pytest.fixture(scope="session")
def oracle():
    return measured


@pytest.fixture(scope="session")
def same():
    return same_metrics


@pytest.fixture(scope="session")
def ragged():
    return ragged_batch


@pytest.fixture(scope="session")
def padded():
    return padded_batch


@pytest.fixture(scope="session")
def threads():
    return Threads


@pytest.fixture(scope="session")
def contract_file(tmp_path_factory):
    """A made-up contract as a file: binary figures, so that equality can be met exactly."""
    dlogp = {
        "primary": "max_abs_dlogp",
        "rule": "value <= threshold",
        "clip_interval": [0.75, 1.25],
        "max_abs_dlogp": LIMITS,
    }
    path = tmp_path_factory.mktemp("contract") / "made-up.json"
    path.write_text(json.dumps({"schema": "xcfg.tolerance/1", "id": "made-up", "version": "1", "dlogp": dlogp}))
    return path


@pytest.fixture(scope="session")
def contract(contract_file):
    from xcfg.plugin.tolerance import load_contract

    return load_contract(contract_file)

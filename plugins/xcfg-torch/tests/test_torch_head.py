"""Logits whose columns lie on two ranks: whole rows gathered for any kernel, or shards for one that merges."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from xcfg.model.capability import Unsupported
from xcfg.model.kernel import KernelRequest
from xcfg_kernels.deterministic import Deterministic
from xcfg_kernels.production import Production

RANKS = Path(__file__).with_name("head_ranks.py")
CASE = runpy.run_path(str(RANKS))


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("head")
    started = [subprocess.Popen([sys.executable, str(RANKS), str(folder), str(rank), "2"]) for rank in range(2)]
    assert [process.wait(timeout=120) for process in started] == [0, 0]
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(2)]


def _oracle(columns: int) -> np.ndarray:
    """In float64 over the first ``columns`` columns, without any log-softmax of a library."""
    logits, targets = CASE["case"]()
    rows = logits.double().numpy()[:, :columns]
    highest = rows.max(axis=1)
    lse = highest + np.log(np.exp(rows - highest[:, None]).sum(axis=1))
    return rows[np.arange(len(rows)), targets.numpy()] - lse


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("gathered", 500),
        ("gathered, padding in", 512),
        ("gathered blocks", 500),
        ("sharded blocks", 500),
        ("sharded blocks, padding in", 512),
        ("sharded order free", 500),
    ],
)
def test_every_way_is_the_oracles(ranks, name, columns) -> None:
    for found in ranks:
        np.testing.assert_allclose(found[name], _oracle(columns), rtol=0, atol=5e-6)


def test_padding_counts_only_where_it_is_said_to() -> None:
    assert np.all(_oracle(512) < _oracle(500) - 1)


def test_bits_are_the_same_on_every_rank_and_layout(ranks) -> None:
    for name in [item for item in ranks[0] if not item.endswith("columns")]:
        assert ranks[0][name].tobytes() == ranks[1][name].tobytes(), name
    assert ranks[0]["gathered blocks"].tobytes() == ranks[0]["sharded blocks"].tobytes()


def test_the_kernel_gets_what_the_layout_says(ranks) -> None:
    assert [int(found["gathered columns"]) for found in ranks] == [500, 500]
    assert [int(found["sharded blocks columns"]) for found in ranks] == [256, 256]
    assert [int(found["sharded order free columns"]) for found in ranks] == [300, 212]


def _request(bounds, **changes) -> KernelRequest:
    sharding = {"bounds": bounds, "vocab_size": 500, "padded_vocab_size": 512, "tp_rank": 0, "tp_world": 2}
    return KernelRequest(
        operator="selected_logprob", device="cpu", dtype="float32", vocab_size=500, sharding={**sharding, **changes}
    )


@pytest.mark.parametrize(
    ("backend", "asked", "words"),
    [
        (Production(), _request(CASE["EVEN"]), "whole rows of logits"),
        (Deterministic(), _request(CASE["UNEVEN"]), "shards of one width"),
        (Deterministic(), _request(CASE["EVEN"], tp_world=3), "3 ranks need as many bounds"),
    ],
)
def test_what_a_kernel_cannot_reduce_is_refused(backend, asked, words) -> None:
    found = backend.probe(asked)
    assert isinstance(found, Unsupported) and words in found.reason

"""The Triton kernels under the interpreter, held against the reference, which is held against float64 elsewhere."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")

from xcfg_kernels import ReductionSpec, simulated_logprob_and_lse  # noqa: E402
from xcfg_kernels.capability import Implementation  # noqa: E402
from xcfg_kernels.layout import Layout  # noqa: E402
from xcfg_kernels.local import local_partials  # noqa: E402
from xcfg_kernels.merge import merge_blocks  # noqa: E402

SCRIPT = Path(__file__).with_name("triton_cases.py")
RANKS = runpy.run_path(str(SCRIPT))
CASES = RANKS["CASES"]
EACH = [("padded", dtype) for dtype in CASES["DTYPES"]] + [("odd", torch.bfloat16), ("wide", torch.bfloat16)]
PARTS = ("logprob", "lse", "gradient")

each = pytest.mark.parametrize(("name", "dtype"), EACH, ids=[f"{name}-{dtype}" for name, dtype in EACH])


@pytest.fixture(scope="module")
def fused(tmp_path_factory):
    path = tmp_path_factory.mktemp("triton") / "found.npz"
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(path)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return dict(np.load(path))


def reference(name, dtype):
    """The eager path's partials and target logits on one rank."""
    vocab, padded, block = RANKS["SIZES"][name]
    logits, targets, _ = RANKS["given"](name, dtype)
    layout = Layout(sharding=CASES["even"](vocab, padded, 1), reduction=ReductionSpec(block=block))
    return layout, local_partials(Implementation.EAGER, logits, targets, layout)


def own(fused, name, dtype, part, kind=torch.float32):
    return torch.from_numpy(fused[f"{name} {dtype} {part}"]).view(kind)


@each
def test_every_degree_and_batch_size_gives_the_same_bits(fused, name, dtype) -> None:
    worlds = RANKS["WORLDS"][name]
    for part in PARTS:
        first = fused[f"{name} {dtype} {part} 1"]
        for world in worlds:
            np.testing.assert_array_equal(fused[f"{name} {dtype} {part} {world}"], first)
        np.testing.assert_array_equal(fused[f"{name} {dtype} {part} alone"], first[:1])
    print(f"{name} {dtype}: {len(worlds)} degrees and a row alone bitwise equal")


@each
def test_partials_against_the_reference(fused, name, dtype) -> None:
    """Maxima and target logits are the same bits; sums differ by the exponential and the order inside a block."""
    _, ((maxima, sums), wanted) = reference(name, dtype)
    assert torch.equal(own(fused, name, dtype, "maxima"), maxima)
    assert torch.equal(own(fused, name, dtype, "wanted"), wanted)
    torch.testing.assert_close(own(fused, name, dtype, "sums"), sums, rtol=2e-6, atol=0)


@each
def test_the_merge_is_the_reference_s(fused, name, dtype) -> None:
    """What the fused path returns is, bit for bit, the reference's merge of the fused partials."""
    layout, _ = reference(name, dtype)
    count = layout.counts[0]
    partials = (own(fused, name, dtype, part)[:, :count].t() for part in ("maxima", "sums"))
    maximum, total = merge_blocks(*partials)
    assert torch.equal(own(fused, name, dtype, "lse 1"), maximum + total.log())
    assert torch.equal(
        own(fused, name, dtype, "logprob 1"), (own(fused, name, dtype, "wanted") - maximum) - total.log()
    )


@each
def test_results_against_the_reference(fused, name, dtype) -> None:
    vocab, padded, block = RANKS["SIZES"][name]
    logits, targets, weights = RANKS["given"](name, dtype)
    options = {"reduction": ReductionSpec(block=block)}
    run = lambda leaves: simulated_logprob_and_lse(leaves, targets, CASES["even"](vocab, padded, 1), **options)  # noqa: E731
    logprob, lse, gradient = CASES["outcome"](run, [logits], weights, vocab)
    for part, right in (("logprob", logprob), ("lse", lse)):
        torch.testing.assert_close(own(fused, name, dtype, f"{part} 1"), right.view(torch.float32), rtol=0, atol=2e-6)
    step = torch.finfo(dtype).eps  # the interpreter truncates to bfloat16 where hardware rounds
    found, right = own(fused, name, dtype, "gradient 1", dtype).float(), gradient.view(dtype).float()
    torch.testing.assert_close(found, right, rtol=2 * step, atol=1e-6)


def test_rows_at_the_edge(fused) -> None:
    logprob, lse = fused["edge_logprob"], fused["edge_lse"]
    assert lse[0] == -np.inf and np.isnan(lse[1:3]).all() and np.isnan(logprob[:3]).all()
    assert logprob[3] == 0.0 and np.isfinite(lse[3])

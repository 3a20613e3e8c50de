"""vLLM on quantised checkpoints against an independent forward pass of the same files.

Quantising activations is a step function: a rounding error of 1e-7 before it may move a code by one, and then every
later number. So most tokens agree to float32 rounding, some do not, and how far those go is measured by the
emulation itself, computed in float32 and in float64. A plain pass of the base is never within that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.engine, pytest.mark.full, pytest.mark.timeout(1800)]
pytest.importorskip("vllm", reason="vllm is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg_vllm.declared_layers import declared_forms  # noqa: E402
from xcfg_vllm.quantization import four_bit_reason  # noqa: E402
from xcfg_vllm.testing.emulation import emulated_logprobs  # noqa: E402
from xcfg_vllm.testing.play import play  # noqa: E402
from xcfg_vllm.testing.quantized import make_quantized  # noqa: E402
from xcfg_vllm.testing.text import text_batch  # noqa: E402

BASE = Path(__file__).parents[3] / "docs/examples/qwen3-tiny"
KNOBS = {
    "rollout.dtype": "float32",
    "rollout.enforce_eager": True,
    "rollout.quantization": None,
    "execution.threads": 1,
    "execution.prefix_cache": False,
    "sampling.logprobs_mode": "raw_logprobs",
    "batch.size": 3,
    "vllm.max_model_len": 256,
}
PATHS = ({"rollout.scoring_path": "forced_decode"}, {"rollout.scoring_path": "prefill"})
KERNELS = {"w8a8-int8": "CPUInt8ScaledMMLinearKernel", "w8a8-fp8": "ChannelWiseTorchFP8ScaledMMLinearKernel"}
FOUR_BITS = ("w4a16", "gptq", "awq")


@pytest.fixture(scope="module")
def batch():
    return text_batch(BASE, (BASE / "corpus/prose.txt").read_text(encoding="utf-8")[:6000])


def _run(tmp_path, batch, scheme, **knobs):
    folder = make_quantized(BASE, tmp_path / scheme, scheme)
    ranks = knobs.get("rollout.tensor_parallel_size", 1)
    played = play(tmp_path / "play", folder, batch, {"rollout.tensor_parallel_size": ranks, **KNOBS, **knobs}, PATHS)
    return folder, played


def _gap(rows, others) -> np.ndarray:
    return np.abs(np.concatenate(rows) - np.concatenate(others))


@pytest.mark.parametrize(("scheme", "ranks"), [("w8a8-int8", 1), ("w8a8-int8", 2), ("w8a8-fp8", 1)])
def test_eight_bits_are_those_of_the_emulation(tmp_path, batch, scheme, ranks) -> None:
    folder, played = _run(tmp_path, batch, scheme, **{"rollout.tensor_parallel_size": ranks})
    assert "error" not in played, played
    assert (played["unchanged"], played["left"]) == (True, 0)
    facts = played["steps"][0]["facts"]["facts"]
    sums = {worker["int8_sums"] for worker in facts["workers"]}
    how = {"tensor_parallel_size": ranks, "saturates": sums == {"saturated"}}
    emulated = emulated_logprobs(folder, batch, **how)
    noise = _gap(emulated, emulated_logprobs(folder, batch, dtype=torch.float64, **how))
    base = emulated_logprobs(BASE, batch)
    for step in played["steps"]:
        own, plain = _gap(step["logprobs"], emulated), _gap(step["logprobs"], base)
        print(
            f"{scheme} TP={ranks} {sums}: own median {np.median(own):.2g} mean {own.mean():.3g} max {own.max():.3g}; "
            f"noise mean {noise.mean():.3g} max {noise.max():.3g}; base median {np.median(plain):.2g} "
            f"mean {plain.mean():.3g} max {plain.max():.3g}"
        )
        assert np.median(own) < 1e-5 < 1e-2 < np.median(plain)
        assert own.mean() < plain.mean() / 10
        assert own.max() < 3 * max(noise.max(), 0.01)
        assert step["observed"]["rollout.quantization"] == "compressed-tensors"
        assert step["observed"]["rollout.tensor_parallel_size"] == ranks
    for worker in facts["workers"]:
        assert any(KERNELS[scheme] in method for method in worker["quant_methods"])
    for held in facts["state"]:
        assert held["uncovered"] == []
        assert held["covers"]["probed"] == (16 if scheme == "w8a8-int8" else 0)


@pytest.mark.parametrize("scheme", FOUR_BITS)
def test_four_bits_are_those_of_the_emulation_or_refused(tmp_path, batch, scheme) -> None:
    folder, played = _run(tmp_path, batch, scheme, **{"rollout.dtype": "bfloat16"})
    if reason := four_bit_reason():
        assert played["error"]["kind"] == "UnsupportedError"
        assert reason in played["error"]["message"]
        assert played["left"] == 0
        pytest.skip(reason)
    assert set(declared_forms(folder).values()) == {"w4a16", "none"}
    emulated, base = emulated_logprobs(folder, batch, dtype=torch.bfloat16), emulated_logprobs(BASE, batch)
    noise = _gap(emulated, emulated_logprobs(folder, batch))
    for step in played["steps"]:
        own, plain = _gap(step["logprobs"], emulated), _gap(step["logprobs"], base)
        print(f"{scheme}: own mean {own.mean():.3g} max {own.max():.3g}; base mean {plain.mean():.3g}")
        assert own.max() < 3 * noise.max()
        assert own.mean() < plain.mean() / 2


def test_a_dtype_vllm_has_no_gptq_for_is_unsupported(tmp_path, batch) -> None:
    if four_bit_reason():
        pytest.skip("4-bit weights are refused before their dtype is")
    _, played = _run(tmp_path, batch, "gptq")
    assert played["error"]["kind"] == "UnsupportedError"
    assert "float16 or bfloat16 only" in played["error"]["message"]

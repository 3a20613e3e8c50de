"""Logprobs against a float64 oracle, and what must not change them."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg_torch.testing.cases import played
from xcfg_torch.testing.oracle import oracle_logprobs

FP32_AGAINST_FP64 = 2e-5  # nats; the bound the float32 case of the example is held to


@pytest.fixture(scope="module")
def oracle(checkpoint, batch) -> np.ndarray:
    return np.concatenate(oracle_logprobs(checkpoint, batch))


def _gap(one: np.ndarray, two: np.ndarray) -> float:
    return float(np.abs(one.astype(np.float64) - two.astype(np.float64)).max())


@pytest.mark.parametrize("attention", ["sdpa", "eager", None])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("backend", ["production", "reference"])
def test_float32_agrees_with_float64(checkpoint, batch, oracle, attention, side, backend) -> None:
    knobs = {"training.attention_backend": attention, "layout.padding_side": side}
    result = played(checkpoint, batch, knobs, backend=backend)
    assert _gap(result.scored[0].samples.logprobs, oracle) < FP32_AGAINST_FP64


@pytest.mark.parametrize(("size", "micro"), [(1, None), (7, None), (7, 2), (3, 2), (2, 5), (100, 3)])
def test_batch_and_micro_batch_size_change_only_rounding(checkpoint, batch, oracle, size, micro) -> None:
    result = played(checkpoint, batch, {"batch.size": size, "batch.micro_size": micro})
    assert _gap(result.scored[0].samples.logprobs, oracle) < FP32_AGAINST_FP64
    assert result.observed["batch.size"] == size
    assert result.observed["batch.micro_size"] == (micro or size)


def test_bits_are_the_same_in_both_roles_and_every_time(checkpoint, batch) -> None:
    training = played(checkpoint, batch, {"training.compute_dtype": "bfloat16"}, times=2)
    rollout = played(checkpoint, batch, {"rollout.dtype": "bfloat16"}, role="rollout")
    first, second = (scored.samples.logprobs for scored in training.scored)
    assert first.tobytes() == second.tobytes() == rollout.scored[0].samples.logprobs.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_really_lower(checkpoint, batch, oracle, dtype) -> None:
    result = played(checkpoint, batch, {"training.compute_dtype": dtype})
    logprobs = result.scored[0].samples.logprobs
    assert np.isfinite(logprobs).all()
    assert _gap(logprobs, oracle) > 10 * FP32_AGAINST_FP64
    assert result.scored[0].rank.compute_dtype == result.observed["training.compute_dtype"] == dtype


def test_output_dtype_is_kept_apart_from_compute_dtype(checkpoint, batch, oracle) -> None:
    knobs = {"training.compute_dtype": "float32", "training.output_dtype": "bfloat16"}
    result = played(checkpoint, batch, knobs)
    assert result.observed["training.output_dtype"] == "bfloat16"
    assert result.observed["training.compute_dtype"] == "float32"
    # rounding a logit to 8 bits moves it by at most 2**-9 of its size, and a logprob by at most twice the largest move
    logits_bound = 2 * 2**-8 * np.abs(oracle).max()
    assert FP32_AGAINST_FP64 < _gap(result.scored[0].samples.logprobs, oracle) < logits_bound


def test_widening_the_logits_changes_no_bit(checkpoint, batch) -> None:
    narrow = played(checkpoint, batch, {"training.compute_dtype": "bfloat16"})
    wide = played(checkpoint, batch, {"training.compute_dtype": "bfloat16", "training.output_dtype": "float32"})
    assert wide.observed["training.output_dtype"] == "float32"
    assert wide.scored[0].samples.logprobs.tobytes() == narrow.scored[0].samples.logprobs.tobytes()


def test_round_trip_of_tokens_masks_and_positions(checkpoint, batch) -> None:
    for side in ("left", "right"):
        samples = played(checkpoint, batch, {"layout.padding_side": side}).scored[0].samples
        assert samples.sequence.tolist() == list(range(len(batch.ids)))
        for row in range(samples.rows):
            tokens = [*batch.prompts[row], *batch.responses[row]]
            assert samples.input_ids[samples.input_slice(row)].tolist() == tokens
            assert samples.position_ids[samples.input_slice(row)].tolist() == list(range(len(tokens)))
            assert tuple(samples.action_mask[samples.response_slice(row)].tolist()) == batch.action_masks[row]


def test_state_is_unchanged_and_semantics_are_stated(checkpoint, batch) -> None:
    result = played(checkpoint, batch, times=2)
    assert result.states[0] == result.states[1]
    semantics = result.scored[0].semantics
    assert (semantics.mode, semantics.temperature, semantics.vocab_size) == ("raw", 1.0, 256)
    assert result.identity.optimizer_steps == 0
    assert "trust_remote_code" not in result.identity.recorded

"""The traps that other tools fall into, each through the command line: none of them is a pass here."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from .recorded_files import compared, record, write

ZERO = {"logprobs": [0.0, 0.0, 0.0]}


def test_empty_or_disjoint_input_is_no_pass(xcfg, tmp_path: Path) -> None:
    for rollout, training, status in (
        ("", "", "invalid_artifact"),
        ("\n", "\n", "invalid_artifact"),
        ([record("a")], "\n", "invalid_artifact"),
        ([record("a")], [record("b")], "invalid_identity"),
    ):
        done = compared(xcfg, tmp_path, rollout, training)
        assert (done.document["status"], done.code) == (status, 6)
        assert (done.document["metrics"], done.document["active_tokens"]) == ({}, 0)
    columns = {"id": np.zeros(0, "U1"), "response_ids": np.zeros((0, 3), np.int64), "logprobs": np.zeros((0, 3))}
    for side in ("r", "t"):
        np.savez(tmp_path / f"{side}.npz", **columns)
    done = xcfg("compare", tmp_path / "r.npz", tmp_path / "t.npz", "--dtype", "bfloat16", "--json")
    assert (done.document["status"], done.code) == ("invalid_artifact", 6)


@pytest.mark.parametrize("value", [math.nan, None, -math.inf])
def test_a_nan_is_never_replaced_by_zero(xcfg, tmp_path: Path, value: float | None) -> None:
    """Beside a rollout logprob of 0.0, a NaN that became 0.0 would be perfect agreement."""
    done = compared(xcfg, tmp_path, [record(**ZERO)], [record(logprobs=[0.0, value, 0.0])])
    assert (done.document["status"], done.code) == ("non_finite", 6)
    assert (done.document["metrics"], done.document["worst"]) == ({}, None)


def test_missing_logprobs_are_never_padded_with_zero(xcfg, tmp_path: Path) -> None:
    """Probability one at every token that has none: of a short list, of nulls, and where a file did it itself."""
    short = compared(xcfg, tmp_path, [record(**ZERO)], [record(logprobs=[0.0])])
    assert (short.document["status"], short.code) == ("invalid_artifact", 6)
    absent = compared(xcfg, tmp_path, [record(**ZERO)], [record(logprobs=None)])
    assert (absent.document["status"], absent.code) == ("invalid_artifact", 6)
    nulls = compared(xcfg, tmp_path, [record(**ZERO)], [record(logprobs=[None, None, None])])
    assert (nulls.document["status"], nulls.code) == ("non_finite", 6)
    padded = compared(xcfg, tmp_path, [record(**ZERO)], [record(**ZERO)])
    assert {item["rule"] for item in padded.document["findings"]} == {"exact_zero_logprobs"}
    against = compared(xcfg, tmp_path, [record()], [record(**ZERO)])
    assert (against.document["status"], against.code) == ("fail", 1)
    assert "exact_zero_logprobs" in {item["rule"] for item in against.document["findings"]}


def test_an_empty_mask_gives_no_metric(xcfg, tmp_path: Path) -> None:
    masked = [record("a", mask=[0, 0, 0]), record("b", mask=[0, 0, 0])]
    done = compared(xcfg, tmp_path, masked, masked)
    assert (done.document["status"], done.code) == ("zero_active_tokens", 6)
    assert (done.document["metrics"], done.document["per_rank"], done.document["worst"]) == ({}, [], None)
    partly = compared(xcfg, tmp_path, [record("a"), masked[1]], [record("a"), masked[1]])
    assert (partly.document["status"], partly.document["active_tokens"]) == ("pass", 3)
    assert partly.document["metrics"]["sequence_max_abs_mean"] == 0.0


def test_a_mean_does_not_hide_one_sequence(xcfg, tmp_path: Path) -> None:
    rollout = [record(f"s{at:03}") for at in range(300)]
    training = [record(f"s{at:03}", logprobs=[-1.5, -2.5, -3.5] if at == 123 else [-1, -2, -3]) for at in range(300)]
    done = compared(xcfg, tmp_path, rollout, training)
    metrics = done.document["metrics"]
    assert (done.document["status"], done.code) == ("fail", 1)
    assert metrics["mean_abs_dlogp"] == pytest.approx(0.5 / 300) and metrics["p99_abs_dlogp"] == 0.0
    assert metrics["mean_abs_dlogp"] < done.document["threshold"]
    assert (metrics["sequence_mean_abs_max"], metrics["sequence_sum_abs_max"]) == (0.5, 1.5)
    assert (done.document["worst"]["sequence"], done.document["worst"]["position"]) == ("s123", 0)


def test_one_measurement_is_not_compared_with_itself(xcfg, tmp_path: Path) -> None:
    """Old logprobs set to the rollout's: one file and column twice, and verl's bypass mode within one file."""
    path = write(tmp_path / "r.jsonl", [record()])
    done = xcfg("compare", path, path, "--json")
    assert (done.document["status"], done.code) == ("invalid_artifact", 6)
    width = 20
    logprobs = -np.linspace(0.125, 3, width, dtype=np.float32)[None]
    batch = {
        "prompts": np.array([[5]]),
        "responses": np.arange(width)[None],
        "attention_mask": np.ones((1, 1 + width), np.int64),
        "response_mask": np.ones((1, width), np.int64),
        "rollout_log_probs": logprobs,
    }
    np.savez(tmp_path / "verl.npz", **batch, old_log_probs=logprobs)
    done = xcfg("compare", tmp_path / "verl.npz", tmp_path / "verl.npz", "--dtype", "bfloat16", "--json")
    assert (done.document["status"], done.code) == ("invalid_artifact", 6)
    assert "bypass_mode" in done.document["reason"]
    np.savez(tmp_path / "verl.npz", **batch, old_log_probs=logprobs - np.float32(2**-10))
    done = xcfg("compare", tmp_path / "verl.npz", tmp_path / "verl.npz", "--dtype", "bfloat16", "--json")
    assert (done.document["status"], done.document["metrics"]["max_abs_dlogp"]) == ("pass", 2**-10)


def test_ranks_are_merged_by_their_active_tokens(xcfg, tmp_path: Path) -> None:
    """One token 0.25 apart on rank 0 and 99 equal ones on rank 1: means of means and of percentiles are far off."""
    many = {"response_ids": list(range(99)), "logprobs": [-1.0] * 99}
    one = {"response_ids": [1], "logprobs": [-1.0]}
    rollout = [record("a", rank=0, **one), record("b", rank=1, **many)]
    training = [record("a", rank=0, **{**one, "logprobs": [-1.25]}), record("b", rank=1, **many)]
    done = compared(xcfg, tmp_path, rollout, training)
    ranks = [(item["active_tokens"], item["metrics"]["mean_abs_dlogp"]) for item in done.document["per_rank"]]
    assert ranks == [(1, 0.25), (99, 0.0)]
    metrics = done.document["metrics"]
    assert metrics["mean_abs_dlogp"] == pytest.approx(0.0025)
    assert metrics["p95_abs_dlogp"] == 0.0
    assert metrics["p99_abs_dlogp"] == pytest.approx(0.01 * 0.25)  # rank 98.01 of 0..99


def test_not_only_the_intersection_is_compared(xcfg, tmp_path: Path) -> None:
    """Everything that both sides have agrees; an id, tokens at the end and a key are on one side only."""
    some, more = [record("a"), record("b")], [record("a"), record("b"), record("c")]
    for rollout, training in ((some, more), (more, some)):
        done = compared(xcfg, tmp_path, rollout, training)
        assert (done.document["status"], done.code, done.document["metrics"]) == ("invalid_identity", 6, {})
    longer = record("b", response_ids=[5, 6, 7, 8], logprobs=[-1.0, -2.0, -3.0, -4.0])
    done = compared(xcfg, tmp_path, some, [record("a"), longer])
    assert (done.document["status"], done.document["metrics"]) == ("invalid_identity", {})
    done = compared(xcfg, tmp_path, some, [record("a"), record("b", temperature=0.5)])
    assert (done.document["status"], done.document["metrics"]) == ("invalid_identity", {})

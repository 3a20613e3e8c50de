"""Off-by-one detector, runs of zeros, logprobs stored too coarsely."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.comparator.blocks import TokenPairs
from xcfg.comparator.compare import compare
from xcfg.comparator.shift import detect_shift
from xcfg.model.outcome import PairedTokens
from xcfg.model.status import Status


def language_like(count, length, seed=0):
    """Logprobs with peaks and a long tail, as rows."""
    generator = np.random.default_rng(seed)
    return (-generator.exponential(2.5, (count, length))).astype(np.float32)


def rules(result):
    return [item.rule for item in result.findings]


def paired(rollout, training):
    rows, length = rollout.shape
    zeros = np.zeros(rows * length, dtype=np.int64)
    return PairedTokens.of_tokens(
        sequence_ids=[f"s{row}" for row in range(rows)],
        sequence=np.repeat(np.arange(rows), length),
        position=np.tile(np.arange(length), rows),
        token=zeros,
        rollout_logp=rollout.ravel(),
        train_logp=training.ravel(),
        rollout_rank=zeros,
        train_rank=zeros,
    )


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_roll_by_one_is_found_with_its_direction_and_numbers(contract, side, shift):
    rollout = language_like(6, 20)
    noise = np.random.default_rng(1).normal(0, 0.01, rollout.shape).astype(np.float32)
    training = np.minimum(np.roll(rollout, shift, axis=1) + noise, 0)
    result, _ = compare(side(rollout.tolist()), side(training.tolist()), contract)
    assert result.status is Status.FAIL
    (finding,) = [item for item in result.findings if item.rule == "off_by_one_shift"]
    assert (finding.source_class, finding.subclass) == ("logical", "tokens-and-masks")
    evidence = finding.evidence
    assert (evidence["shift"], evidence["sequences_explained"], evidence["sequences_compared"]) == (shift, 6, 6)
    inner = slice(1, -1)
    before = np.abs(training.astype(float) - rollout)[:, inner]
    after = np.abs(np.roll(training, -shift, axis=1).astype(float) - rollout)[:, inner]
    assert evidence["mean_abs_at_0"] == pytest.approx(before.mean(), rel=1e-9)
    assert evidence["max_abs_at_0"] == pytest.approx(before.max(), rel=1e-9)
    assert evidence["mean_abs_at_shift"] == pytest.approx(after.mean(), rel=1e-9)
    assert evidence["max_abs_at_shift"] == pytest.approx(after.max(), rel=1e-9)
    assert evidence["correlation_at_shift"] > 0.99 > evidence["correlation_at_0"]


def test_one_rolled_sequence_among_many_is_found():
    rollout = language_like(40, 20)
    training = rollout.copy()
    training[13] = np.roll(training[13], 1)
    evidence = detect_shift(TokenPairs(paired(rollout, training)))
    assert (evidence.shift, evidence.sequences_explained, evidence.tokens_compared) == (1, 1, 18)
    assert evidence.mean_abs_at_shift == 0.0


def test_short_sequences_are_judged_together():
    rollout = language_like(30, 5)
    evidence = detect_shift(TokenPairs(paired(rollout, np.roll(rollout, -1, axis=1))))
    assert (evidence.shift, evidence.sequences_explained, evidence.tokens_compared) == (-1, 0, 90)


@pytest.mark.parametrize("seed", range(5))
def test_noise_unrelated_values_and_one_wrong_end_are_no_shift(seed):
    rollout = language_like(20, 24, seed)
    noisy = rollout + np.random.default_rng(seed).normal(0, 0.1, rollout.shape).astype(np.float32)
    assert detect_shift(TokenPairs(paired(rollout, noisy))) is None
    assert detect_shift(TokenPairs(paired(rollout, language_like(20, 24, seed + 100)))) is None
    assert detect_shift(TokenPairs(paired(rollout, rollout))) is None
    flat = np.full((4, 12), -0.5, dtype=np.float32)
    for end in (0, -1):
        spiked = flat.copy()
        spiked[:, end] = -9.0
        assert detect_shift(TokenPairs(paired(flat, spiked))) is None
        assert detect_shift(TokenPairs(paired(spiked, flat))) is None


def test_a_shift_is_not_sought_across_masked_tokens():
    rollout = language_like(3, 20)
    tokens = paired(rollout, np.roll(rollout, 1, axis=1))
    keep = tokens.position % 2 == 0
    thinned = PairedTokens.of_tokens(
        sequence_ids=tokens.sequence_ids,
        **{
            name: getattr(tokens, name)[keep]
            for name in ("sequence", "position", "token", "rollout_logp", "train_logp", "rollout_rank", "train_rank")
        },
    )
    assert detect_shift(TokenPairs(thinned)) is None


def zero_case(contract, side, row, masks=None):
    rollout = side([[-1.0 - 0.1 * place for place in range(len(row))], [-1.0]], masks=masks)
    result, _ = compare(rollout, side([row, [-1.0]], masks=masks), contract)
    return [item for item in result.findings if item.rule == "exact_zero_logprobs"]


def test_three_zeros_in_a_row_are_found_where_they_are(contract, side):
    (finding,) = zero_case(contract, side, [-1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    evidence = finding.evidence
    assert (evidence["side"], evidence["runs"], evidence["longest_run"], evidence["tokens"]) == ("training", 1, 4, 4)
    assert dict(evidence["first"]) == {"sequence": "s0", "position": 4}


def test_two_zeros_or_zeros_apart_are_not_a_run(contract, side):
    assert not zero_case(contract, side, [-1.0, 0.0, 0.0, -1.0, 0.0, 0.0])
    # masked out in between, so the zeros are not adjacent in the response
    mask = [[True, True, False, True, True], [True]]
    assert not zero_case(contract, side, [0.0, 0.0, -1.0, 0.0, 0.0], masks=mask)


def test_zeros_at_the_ends_of_neighbouring_sequences_are_not_a_run(contract, side):
    rollout = side([[-1.0, -1.0], [-1.0, -1.0]])
    result, _ = compare(rollout, side([[0.0, 0.0], [0.0, 0.0]]), contract)
    assert "exact_zero_logprobs" not in rules(result)


def to_bfloat16(values):
    """Round to nearest even on the upper 16 bits."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)


def test_logprobs_rounded_to_bfloat16_are_found_with_their_spacing(contract, side):
    rollout = -np.linspace(0.1, 12.0, 50, dtype=np.float32)[None]
    coarse = to_bfloat16(rollout)
    result, _ = compare(side(rollout.tolist()), side(coarse.tolist()), contract)
    (finding,) = [item for item in result.findings if item.rule == "logprobs_coarser_than_limit"]
    evidence = finding.evidence
    assert (evidence["side"], evidence["stored_dtype"], evidence["largest_abs_logp"]) == ("training", "bfloat16", 12.0)
    assert evidence["spacing"] == 0.0625  # 8 to 16 has 128 steps in bfloat16
    assert evidence["spacing_over_limit"] == 64.0
    assert "0.0625" in finding.advice


def test_logprobs_rounded_to_float16_are_found_only_where_coarser_than_the_limit(contract, side):
    rollout = -np.linspace(0.1, 12.0, 50, dtype=np.float32)[None]
    narrow = rollout.astype(np.float16).astype(np.float32)
    result, _ = compare(side(rollout.tolist()), side(narrow.tolist()), contract)
    (finding,) = [item for item in result.findings if item.rule == "logprobs_coarser_than_limit"]
    assert (finding.evidence["stored_dtype"], finding.evidence["spacing"]) == ("float16", 2.0**-7)
    loose, _ = compare(side(rollout.tolist(), dtype="bfloat16"), side(narrow.tolist()), contract)
    assert "logprobs_coarser_than_limit" not in rules(loose)
    plain, _ = compare(side(rollout.tolist()), side((rollout * 1.0001).tolist()), contract)
    assert "logprobs_coarser_than_limit" not in rules(plain)

"""What the GRPO loss is exactly equal to where the policy has not moved, and its gradient there."""

from __future__ import annotations

import runpy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg_kernels.grpo import (  # noqa: E402
    Accumulation,
    LossReductionSpec,
    Microbatch,
    PolicyLossSpec,
    even_layout,
    grpo_loss,
    token_terms,
)
from xcfg_kernels.grpo.reduction import Normaliser  # noqa: E402

CASES = runpy.run_path(str(Path(__file__).with_name("grpo_cases.py")))
LAYOUT = even_layout(sequences=8, width=12, microbatch=8)
SEEDS = range(50)
LENGTHS = np.array([11, 5, 9, 1, 12, 7, 3, 10])
"""Active tokens of each sequence; the first has a hole."""


def on_policy(seed: int):
    """Logprobs that are the old ones, bit for bit; advantages in 64ths, whose sums no float32 rounds."""
    found = CASES["tensors"](seed)
    found["advantages"] = (found["advantages"] * 64).round() / 64
    return found, torch.where(found["mask"], found["old"], torch.nan).requires_grad_()


def quotient(numerator: Fraction, *denominators: int) -> np.float32:
    """Each division rounded to float32; the numerator is exact in it."""
    value = np.float32(float(numerator))
    assert Fraction(float(value)) == numerator
    for denominator in denominators:
        value = value / np.float32(denominator)
    return value


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ratio_is_exactly_one_and_the_loss_the_masked_mean_of_minus_a(seed) -> None:
    found, logprobs = on_policy(seed)
    batch = CASES["microbatch"](found, logprobs, slice(None), slice(None), kl=False)
    done = grpo_loss([batch], LAYOUT, PolicyLossSpec(), LossReductionSpec(normaliser=Normaliser.TOKEN_MEAN))
    assert torch.equal(done.terms[0].ratio, torch.ones(8, 12))
    totals = [-Fraction(float(a)) * int(n) for a, n in zip(found["advantages"], LENGTHS, strict=True)]
    assert done.loss.item() == quotient(sum(totals), 58)
    np.testing.assert_array_equal(done.sequences.numpy(), [float(total) for total in totals])
    done.loss.backward()
    analytic = np.where(found["mask"], -found["advantages"].numpy()[:, None] * (np.float32(1) / np.float32(58)), 0)
    np.testing.assert_array_equal(logprobs.grad.numpy(), analytic.astype(np.float32))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mean_over_sequences_is_that_of_minus_a(seed) -> None:
    found, logprobs = on_policy(seed)
    batch = CASES["microbatch"](found, logprobs, slice(None), slice(None), kl=False)
    done = grpo_loss([batch], LAYOUT, PolicyLossSpec(), LossReductionSpec(normaliser=Normaliser.SEQ_MEAN))
    np.testing.assert_array_equal(done.sequences.detach().numpy(), -found["advantages"].numpy())
    assert done.loss.item() == quotient(-sum(Fraction(float(a)) for a in found["advantages"]), 8)
    done.loss.backward()
    weights = np.float32(1) / LENGTHS.astype(np.float32) / np.float32(8)
    analytic = np.where(found["mask"], -found["advantages"].numpy()[:, None] * weights[:, None], 0)
    np.testing.assert_array_equal(logprobs.grad.numpy(), analytic.astype(np.float32))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_form_without_a_ratio_is_minus_a_times_logp(seed) -> None:
    found, _ = on_policy(seed)
    eighths = (found["old"].clamp(min=-16) * 8).round() / 8
    found["advantages"] = (found["advantages"] * 8).round() / 8
    logprobs = torch.where(found["mask"], eighths, torch.nan).requires_grad_()
    batch = CASES["microbatch"](found, logprobs, slice(None), slice(None), clip=False, kl=False)
    reduction = LossReductionSpec(normaliser=Normaliser.TOKEN_MEAN)
    done = grpo_loss([batch], LAYOUT, PolicyLossSpec(clip=None), reduction)
    exact = [
        sum(-Fraction(float(a)) * Fraction(float(p)) for p in row[kept].tolist())
        for a, row, kept in zip(found["advantages"], eighths, found["mask"], strict=True)
    ]
    np.testing.assert_array_equal(done.sequences.detach().numpy(), [float(value) for value in exact])
    assert done.loss.item() == quotient(sum(exact), 58)
    assert done.terms[0].ratio is None
    done.loss.backward()
    ratio = torch.where(found["mask"], eighths, torch.nan).requires_grad_()
    clipped = Microbatch(
        logprobs=ratio, mask=found["mask"], advantages=found["advantages"], old_logprobs=ratio.detach().clone()
    )
    grpo_loss([clipped], LAYOUT, PolicyLossSpec(), reduction).loss.backward()
    assert torch.equal(CASES["bits"](logprobs.grad + 0.0), CASES["bits"](ratio.grad + 0.0))


def test_a_reference_equal_to_the_policy_costs_nothing() -> None:
    found, logprobs = on_policy(0)
    batch = Microbatch(
        logprobs=logprobs,
        mask=found["mask"],
        advantages=found["advantages"],
        old_logprobs=logprobs.detach().clone(),
        reference_logprobs=logprobs.detach().clone(),
    )
    without = CASES["microbatch"](found, logprobs, slice(None), slice(None), kl=False)
    for estimator in ("k1", "k2", "k3"):
        terms = token_terms(batch, PolicyLossSpec(kl_weight=0.5, kl_estimator=estimator))
        assert not terms.kl.any()
        assert torch.equal(terms.loss, token_terms(without, PolicyLossSpec()).loss)


@pytest.mark.parametrize("accumulation", list(Accumulation))
def test_repeated_runs(accumulation) -> None:
    kept = set()
    for _ in range(5):
        found = CASES["tensors"](3)
        logprobs = (found["old"] + 0.125).requires_grad_()
        batch = CASES["microbatch"](found, logprobs, slice(None), slice(None))
        reduction = LossReductionSpec(normaliser=Normaliser.TOKEN_MEAN, accumulation=accumulation)
        done = grpo_loss([batch], LAYOUT, PolicyLossSpec(kl_weight=0.1), reduction)
        done.loss.backward()
        kept.add((done.loss.item(), done.sequences.numpy().tobytes(), logprobs.grad.numpy().tobytes()))
        assert str(done.loss.dtype) == f"torch.{accumulation}"
    assert len(kept) == 1

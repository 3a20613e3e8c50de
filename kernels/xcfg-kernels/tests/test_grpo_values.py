"""The GRPO loss against float64 loops, its parts against figures worked out by hand, and what it refuses."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg.errors import InvalidInput, UnsupportedError  # noqa: E402
from xcfg_kernels import selected_logprob  # noqa: E402
from xcfg_kernels.grpo import (  # noqa: E402
    AdvantageSpec,
    LossLayout,
    LossReductionSpec,
    Microbatch,
    PolicyLossSpec,
    even_layout,
    group_advantages,
    grpo_loss,
    token_terms,
)
from xcfg_kernels.grpo.reduction import Count, Normaliser, Order  # noqa: E402

CASES = runpy.run_path(str(Path(__file__).with_name("grpo_cases.py")))
POLICIES = [
    {},
    {"clip": None},
    {"clip": (0.1, math.inf)},
    *({"kl_weight": 0.25, "kl_estimator": name} for name in ("k1", "k2", "k3")),
]
REDUCTIONS = [
    {"normaliser": Normaliser.TOKEN_MEAN},
    {"normaliser": Normaliser.SEQ_MEAN},
    {"normaliser": Normaliser.SEQ_SUM_TOKEN_MEAN},
    {"normaliser": Normaliser.CONSTANT, "constant": 96.0},
    {"normaliser": Normaliser.TOKEN_MEAN, "count": Count.MICROBATCH},
    {"normaliser": Normaliser.SEQ_MEAN, "count": Count.MICROBATCH},
]


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("accumulation", ["float32", "float64"])
@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda item: "-".join(map(str, item.values())))
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_against_float64(policy, reduction, accumulation, order) -> None:
    found = CASES["tensors"](7)
    layout = LossLayout(microbatches=[[[0, 5, 2], [1, 3, 4, 6, 7]]], positions=[range(12)])
    logits = found["logits"].clone().requires_grad_()
    logprobs = selected_logprob(logits, found["targets"])
    use = {"clip": policy.get("clip", ()) is not None, "kl": "kl_weight" in policy}
    batches = [CASES["microbatch"](found, logprobs[list(rows)], list(rows), slice(None), **use) for rows in layout.own]
    spec = LossReductionSpec(**reduction, accumulation=accumulation, order=order)
    done = grpo_loss(batches, layout, PolicyLossSpec(**policy), spec)
    asked = {"clip": policy.get("clip", (0.2, 0.2)), "kl_weight": policy.get("kl_weight", 0.0)}
    asked["kl"] = policy.get("kl_estimator", "k3")
    groups = layout.own if spec.count is Count.MICROBATCH else None
    loss, sequences = CASES["oracle"](found, spec.normaliser, **asked, groups=groups, constant=spec.constant)
    np.testing.assert_allclose(done.sequences.numpy(), sequences, rtol=3e-5, atol=3e-6)
    assert done.loss.item() == pytest.approx(loss, rel=3e-5, abs=3e-6)
    done.loss.backward()
    nudge = torch.zeros_like(found["logits"], dtype=torch.float64)
    nudge[2, 3, 5] = 1e-4
    sides = [
        CASES["oracle"](
            {**found, "logits": found["logits"].double() + sign * nudge}, spec.normaliser, **asked, groups=groups,
            constant=spec.constant,
        )[0]
        for sign in (1, -1)
    ]  # fmt: skip
    assert logits.grad[2, 3, 5].item() == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=2e-3, abs=1e-8)
    assert not logits.grad[~found["mask"]].any()


def one_token(logprob, advantage, old=None, reference=None) -> Microbatch:
    own = lambda value: None if value is None else torch.tensor([[value]])  # noqa: E731
    return Microbatch(
        logprobs=own(logprob).requires_grad_(),
        mask=torch.tensor([[True]]),
        advantages=torch.tensor([advantage]),
        old_logprobs=own(old),
        reference_logprobs=own(reference),
    )


@pytest.mark.parametrize(
    ("change", "advantage", "loss", "gradient"),
    [
        # ratio 2 and 1/2, bounds 0.8 and 1.2: only what would be gained beyond a bound is cut, with its gradient
        (math.log(2), 3.0, -3.6, 0.0),
        (math.log(2), -3.0, 6.0, 6.0),
        (-math.log(2), 3.0, -1.5, -1.5),
        (-math.log(2), -3.0, 2.4, 0.0),
    ],
)
def test_clipping_by_hand(change, advantage, loss, gradient) -> None:
    batch = one_token(-1.0 + change, advantage, old=-1.0)
    found = token_terms(batch, PolicyLossSpec()).loss
    assert found.item() == pytest.approx(loss, rel=1e-6)
    found.sum().backward()
    assert batch.logprobs.grad.item() == pytest.approx(gradient, rel=1e-6, abs=0)


@pytest.mark.parametrize(
    ("estimator", "value", "gradient"),
    # d = ln 2: exp(d) = 2
    [("k1", -math.log(2), 1.0), ("k2", math.log(2) ** 2 / 2, -math.log(2)), ("k3", 1 - math.log(2), -1.0)],
)
def test_estimators_by_hand(estimator, value, gradient) -> None:
    batch = one_token(-1.0 - math.log(2), 0.0, old=-1.0, reference=-1.0)
    terms = token_terms(batch, PolicyLossSpec(kl_weight=1.0, kl_estimator=estimator))
    assert terms.kl.item() == pytest.approx(value, rel=1e-6)
    terms.loss.sum().backward()
    assert batch.logprobs.grad.item() == pytest.approx(gradient, rel=1e-6)


def test_k3_keeps_its_digits_where_the_policies_almost_agree() -> None:
    step = 2.0**-14
    terms = token_terms(
        one_token(-1.0, 0.0, old=-1.0, reference=-1.0 + step), PolicyLossSpec(kl_weight=1.0, kl_estimator="k3")
    )
    assert terms.kl.item() == pytest.approx(step**2 / 2 + step**3 / 6, rel=1e-6)


def test_advantages_by_hand() -> None:
    rewards, groups = torch.tensor([1.0, 5.0, 0.0, 5.0, 0.0, 5.0]), torch.tensor([7, 2, 7, 2, 7, 2])
    found = group_advantages(rewards, groups, AdvantageSpec(epsilon=1e-6))
    deviation = math.sqrt(1 / 3) + 1e-6
    np.testing.assert_allclose(found[[0, 2, 4]], np.array([2, -1, -1]) / 3 / deviation, rtol=1e-6)
    assert not found[[1, 3, 5]].any()
    plain = group_advantages(rewards, groups, AdvantageSpec(scale="none"))
    np.testing.assert_allclose(plain[[0, 2, 4]], np.array([2, -1, -1]) / 3, rtol=1e-6)
    assert not group_advantages(torch.full((3,), 0.1), torch.zeros(3, dtype=torch.int64), AdvantageSpec()).any()


def test_a_group_is_not_moved_by_others() -> None:
    random = torch.Generator().manual_seed(5)
    rewards, groups = torch.randn(12, generator=random), torch.arange(12) % 3
    alone = group_advantages(rewards[groups == 1], torch.ones(4, dtype=torch.int64), AdvantageSpec())
    assert torch.equal(group_advantages(rewards, groups, AdvantageSpec())[groups == 1], alone)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"normaliser": "mean"}, "'mean' is none of token_mean, seq_mean, seq_sum_token_mean, constant"),
        ({"normaliser": Normaliser.CONSTANT}, "needs a finite constant above 0, not None"),
        ({"normaliser": Normaliser.CONSTANT, "constant": 0.0}, "needs a finite constant above 0"),
        ({"normaliser": Normaliser.SEQ_MEAN, "constant": 3.0}, "a constant of 3.0 has no place"),
        ({"normaliser": Normaliser.SEQ_SUM_TOKEN_MEAN, "count": Count.MICROBATCH}, "counts no microbatch"),
    ],
)
def test_reductions_that_contradict_themselves(fields, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        LossReductionSpec(**fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"clip": (1.5, 0.2)}, r"low in \[0, 1\], not 1.5"),
        ({"clip": (0.2, -0.1)}, "high of at least 0, not -0.1"),
        ({"kl_weight": -1.0}, "kl_weight is a finite number of at least 0"),
    ],
)
def test_policies_that_are_refused(fields, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        PolicyLossSpec(**fields)


@pytest.mark.parametrize(
    ("microbatches", "positions", "words"),
    [
        ([[[0, 1]], [[1, 2]]], [[0]], "sequence 1 is held more than once"),
        ([[[0, 2]]], [[0]], "sequences are numbered from 0 without a gap; 1 does not fit"),
        ([[[0]], []], [[0]], "data parallel rank 1 has no sequence"),
        ([[[0]]], [[0, 1], [3]], "positions are numbered from 0 without a gap; 2 does not fit"),
        ([[[0]]], [[0, 1], [1]], "position 1 is held more than once"),
    ],
)
def test_layouts_that_are_refused(microbatches, positions, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        LossLayout(microbatches=microbatches, positions=positions)


def test_batches_that_do_not_fit() -> None:
    layout, reduction = even_layout(sequences=1, width=1, microbatch=1), LossReductionSpec(normaliser="token_mean")
    clipped = PolicyLossSpec()
    run = lambda batch, policy=clipped, at=layout: grpo_loss([batch], at, policy, reduction)  # noqa: E731
    with pytest.raises(InvalidInput, match="the clipped ratio needs old_logprobs"):
        run(one_token(-1.0, 1.0))
    with pytest.raises(InvalidInput, match="old_logprobs are read only with the clipped ratio"):
        run(one_token(-1.0, 1.0, old=-1.0), PolicyLossSpec(clip=None))
    with pytest.raises(InvalidInput, match="reference_logprobs are read only with a kl_weight above 0"):
        run(one_token(-1.0, 1.0, old=-1.0, reference=-1.0))
    with pytest.raises(InvalidInput, match=r"the layout gives this rank logprobs of \[\(2, 1\)\]"):
        run(one_token(-1.0, 1.0, old=-1.0), at=even_layout(sequences=2, width=1, microbatch=2))
    with pytest.raises(InvalidInput, match="2 data parallel ranks need their process group"):
        run(one_token(-1.0, 1.0, old=-1.0), at=even_layout(sequences=2, width=1, microbatch=1, dp=(0, 2)))
    nothing = one_token(-1.0, 1.0, old=-1.0)
    nothing.mask[:] = False
    with pytest.raises(InvalidInput, match="no token of the batch is active"):
        run(nothing)
    half = Microbatch(
        logprobs=torch.zeros(1, 1).bfloat16(),
        mask=torch.ones(1, 1, dtype=torch.bool),
        advantages=torch.ones(1),
        old_logprobs=torch.zeros(1, 1).bfloat16(),
    )
    with pytest.raises(UnsupportedError, match="float32 or float64, not"):
        run(half)

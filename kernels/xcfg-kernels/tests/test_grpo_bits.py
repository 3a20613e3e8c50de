"""What changes no bit of the GRPO loss in one process: padding, microbatches, doing without the autograd function."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg_kernels.grpo import (  # noqa: E402
    LossLayout,
    LossReductionSpec,
    PolicyLossSpec,
    active_counts,
    even_layout,
    grpo_loss,
    loss_axes,
    merged,
    token_terms,
    token_weights,
)
from xcfg_kernels.grpo.order import summed  # noqa: E402

CASES = runpy.run_path(str(Path(__file__).with_name("grpo_cases.py")))
POLICY = PolicyLossSpec(kl_weight=0.1)
SPECS = [
    LossReductionSpec(normaliser=normaliser, accumulation=accumulation)
    for normaliser in ("token_mean", "seq_mean", "seq_sum_token_mean")
    for accumulation in ("float32", "float64")
]


def batches_of(found, logprobs, layout):
    return [CASES["microbatch"](found, logprobs[list(rows)], list(rows), slice(None)) for rows in layout.own]


def outcome(found, layout, spec):
    logprobs = (found["old"] + 0.0625).requires_grad_()
    done = grpo_loss(batches_of(found, logprobs, layout), layout, POLICY, spec)
    done.loss.backward()
    return [CASES["bits"](values) for values in (done.loss, done.sequences, logprobs.grad)]


def same(left, right) -> bool:
    return all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.normaliser} {spec.accumulation}")
def test_microbatches_and_the_order_of_rows(spec) -> None:
    compared = 0
    for seed in range(20):
        found = CASES["tensors"](seed)
        whole = outcome(found, even_layout(sequences=8, width=12, microbatch=8), spec)
        for cut in ([[0, 1, 2, 3], [4, 5, 6, 7]], [[7], [6, 5, 4], [3, 2, 1, 0]], [[row] for row in range(8)]):
            layout = LossLayout(microbatches=[cut], positions=[range(12)])
            assert same(outcome(found, layout, spec), whole)
            compared += 1
    print(f"{compared} cuts into microbatches")


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.normaliser} {spec.accumulation}")
def test_padding_behind_the_tokens(spec) -> None:
    found = CASES["tensors"](4)
    wide = {name: torch.nn.functional.pad(found[name], (0, 21)) for name in ("old", "reference", "mask")}
    narrow = outcome(found, even_layout(sequences=8, width=12, microbatch=8), spec)
    padded = outcome({**found, **wide}, even_layout(sequences=8, width=33, microbatch=8), spec)
    assert same([*padded[:2], padded[2][:, :12]], narrow) and not padded[2][:, 12:].any()


def test_zeros_behind_values_keep_the_sign_of_zero() -> None:
    values = torch.tensor([-0.0])
    assert torch.equal(CASES["bits"](summed(values)), CASES["bits"](summed(torch.tensor([-0.0, 0.0, 0.0]))))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.normaliser} {spec.accumulation}")
def test_one_backward_pass_a_microbatch(spec) -> None:
    found = CASES["tensors"](9)
    layout = even_layout(sequences=8, width=12, microbatch=2)
    logprobs = (found["old"] + 0.0625).requires_grad_()
    batches = batches_of(found, logprobs, layout)
    axes = loss_axes(layout, POLICY, spec, None, None, logprobs)
    counts = active_counts([batch.mask for batch in batches], layout, axes)
    weights, kept = token_weights(counts, layout, spec), []
    for rows, batch in zip(layout.own, batches, strict=True):
        loss = token_terms(batch, POLICY).loss
        loss.backward(weights[list(rows)][:, None].to(loss.dtype).expand_as(loss))
        kept.append(loss.detach())
    loss, sequences = merged(kept, counts, layout, spec, axes)
    assert same([CASES["bits"](item) for item in (loss, sequences, logprobs.grad)], outcome(found, layout, spec))


def test_a_sequence_with_nothing_active_counts_as_a_sequence() -> None:
    found = CASES["tensors"](2)
    found["mask"][3] = False
    logprobs = found["old"].clone().requires_grad_()
    layout, spec = even_layout(sequences=8, width=12, microbatch=8), LossReductionSpec(normaliser="seq_mean")
    done = grpo_loss(batches_of(found, logprobs, layout), layout, POLICY, spec)
    assert done.sequences[3] == 0 and done.counts[3] == 0
    assert done.loss.item() == pytest.approx(done.sequences.double().sum().item() / 8, rel=1e-6)

"""Tensors of every dtype, layout and mode say what the same numbers as numpy arrays say, and are left as they were."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import xcfg
from xcfg.errors import InvalidInput
from xcfg.model.status import Status
from xcfg_torch import compare_logprobs

GENERATOR = np.random.default_rng(0)
ROLLOUT = (-GENERATOR.exponential(1, (6, 40)) - 0.1).astype(np.float32)
TRAINING = (ROLLOUT + GENERATOR.uniform(-0.05, 0.05, ROLLOUT.shape)).astype(np.float32)
MASK = GENERATOR.random(ROLLOUT.shape) < 0.8
IDS = GENERATOR.integers(0, 1000, ROLLOUT.shape)


def tensors(dtype=torch.float32, grad=False):
    return [torch.tensor(values).to(dtype).requires_grad_(grad) for values in (ROLLOUT, TRAINING)]


def rounded(values, dtype):
    """Float64 values of a tensor's dtype, through Python floats."""
    return np.array(torch.tensor(values).to(dtype).tolist())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_every_floating_dtype_is_compared_by_its_own_values(dtype):
    found = compare_logprobs(*tensors(dtype), mask=torch.tensor(MASK), token_ids=torch.tensor(IDS), dtype="bf16")
    left, right = rounded(ROLLOUT, dtype), rounded(TRAINING, dtype)
    size = np.abs(right - left)[MASK]
    assert found.metrics["max_abs_dlogp"] == size.max()
    assert found.metrics["p99_abs_dlogp"] == np.percentile(size, 99)
    assert found.metrics["mean_abs_dlogp"] == pytest.approx(size.mean(), rel=1e-12)
    place = np.unravel_index(np.argmax(np.where(MASK, np.abs(right - left), -1)), MASK.shape)
    assert (found.worst.sequence, found.worst.position) == (str(place[0]), place[1])
    assert (found.worst.token, found.worst.rollout_logp) == (IDS[place], left[place])
    expected = xcfg.compare_logprobs(left, right, mask=MASK, token_ids=IDS, dtype="bf16")
    assert dict(found.metrics) == dict(expected.metrics)


def layouts():
    left, right = tensors()
    lengths = torch.full((6,), 40, dtype=torch.int32)
    jagged = [torch.nested.nested_tensor(list(side), layout=torch.jagged) for side in (left, right)]
    return {
        "padded": (left, right, {"mask": torch.tensor(MASK)}),
        "mask of floats": (left, right, {"mask": torch.tensor(MASK).to(torch.bfloat16)}),
        "sliced": (torch.cat([right, left], 1)[:, 40:], right.T.contiguous().T, {"mask": torch.tensor(MASK)}),
        "flat": (left.flatten(), right.flatten(), {"mask": torch.tensor(MASK).flatten(), "lengths": lengths}),
        "packed": (left.view(1, -1), right.view(1, -1), {"mask": torch.tensor(MASK).view(1, -1), "lengths": lengths}),
        "lists": (list(left), right.unbind(), {"mask": list(torch.tensor(MASK))}),
        "jagged": (*jagged, {"mask": list(torch.tensor(MASK))}),
        "jagged and list": (jagged[0], list(right), {"mask": MASK}),
        "tensor and array": (left, TRAINING, {"mask": MASK.tolist()}),
        "another library's": (Exported(left), Exported(right), {"mask": Exported(torch.tensor(MASK))}),
    }


class Exported:
    """An array of some other library: DLPack and nothing else."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("name", list(layouts()))
def test_every_layout_is_the_same_comparison(name):
    left, right, options = layouts()[name]
    found = compare_logprobs(left, right, dtype=torch.bfloat16, **options)
    assert found == xcfg.compare_logprobs(ROLLOUT, TRAINING, mask=MASK, dtype="bfloat16")
    assert found.status is Status.PASS


def test_another_library_s_bfloat16():
    left, right = tensors(torch.bfloat16)
    assert compare_logprobs(Exported(left), Exported(right), dtype="bf16") == compare_logprobs(
        left, right, dtype="bf16"
    )


MODES = {
    "grad": torch.enable_grad,
    "no grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.mark.parametrize("name", list(MODES))
def test_the_mode_of_the_trainer_does_not_matter(name):
    expected = compare_logprobs(*tensors(torch.bfloat16), mask=torch.tensor(MASK), dtype="bf16")
    with MODES[name]():
        before = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        found = compare_logprobs(*tensors(torch.bfloat16), mask=torch.tensor(MASK), dtype="bf16")
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == before
    assert found == expected


def test_the_loss_of_the_step_is_untouched():
    """The call stands between forward and backward: the gradient is the one without it."""
    weights = torch.tensor(TRAINING, requires_grad=True)
    logp = -torch.nn.functional.softplus(weights)
    loss = (logp - torch.tensor(ROLLOUT)).exp().mean()
    versions = logp._version, weights._version
    compare_logprobs(torch.tensor(ROLLOUT), logp, dtype="bf16")
    assert (logp._version, weights._version) == versions
    assert weights.grad is None
    loss.backward()
    ratio = np.exp(-np.log1p(np.exp(TRAINING.astype(np.float64))) - ROLLOUT)
    gradient = -ratio / (1 + np.exp(-TRAINING.astype(np.float64))) / TRAINING.size
    np.testing.assert_allclose(weights.grad.numpy(), gradient, rtol=1e-5)


def test_nothing_that_is_given_is_changed():
    sides = tensors(torch.bfloat16)
    given = [*sides, torch.tensor(MASK), torch.tensor(IDS)]
    before = [value.clone() for value in given]
    compare_logprobs(*sides, mask=given[2], token_ids=given[3], dtype="bf16")
    assert all(torch.equal(value, kept) for value, kept in zip(given, before, strict=True))
    assert [value._version for value in given] == [0, 0, 0, 0]


def test_two_views_that_begin_alike_are_two():
    square = torch.triu(torch.ones(6, 6, dtype=torch.int64))
    left, right = (side[:, :6] for side in tensors())
    found = compare_logprobs(left, right, mask=square, token_ids=square.T, dtype="bf16")
    arrays = {"mask": np.triu(np.ones((6, 6), int)), "token_ids": np.tril(np.ones((6, 6), int))}
    assert found == xcfg.compare_logprobs(ROLLOUT[:, :6], TRAINING[:, :6], **arrays, dtype="bf16")


def twice():
    single, half = tensors()[0], tensors(torch.bfloat16)[0]
    parameter = torch.nn.Parameter(half.clone())
    jagged = torch.nested.nested_tensor(list(half), layout=torch.jagged)
    exported = Exported(half)
    return {
        "float32": (single, single),
        "bfloat16": (half, half),
        "detached": (parameter, parameter.detach()),
        "a view": (half, half.view(240).view(6, 40)),
        "strided": (half[:, ::2], half[:, ::2]),
        "lists": (list(half), list(half)),
        "one row of a list": (list(half), [*tensors(torch.bfloat16)[1][:5], half[5]]),
        "jagged": (jagged, jagged),
        "another library's": (exported, exported),
    }


@pytest.mark.parametrize("name", list(twice()))
def test_one_memory_is_no_second_measurement(name):
    found = compare_logprobs(*twice()[name], dtype="bf16")
    assert found.status is Status.INVALID_ARTIFACT
    assert found.reason == "both sides are the same logprobs in memory, not two measurements, on rank 0"


def test_two_measurements_may_share_an_allocation_and_agree_in_every_bit():
    half = tensors(torch.bfloat16)[0]
    both = torch.stack([half, half])
    for sides in ((half, half.clone()), (both[0], both[1]), (list(both[0]), list(both[1])), (half, half.float())):
        assert compare_logprobs(*sides, dtype="bf16").metrics["max_abs_dlogp"] == 0.0
    empty = torch.zeros(0, dtype=torch.bfloat16)
    assert compare_logprobs(empty, empty, lengths=[], dtype="bf16").status is Status.ZERO_ACTIVE_TOKENS


@pytest.mark.parametrize(
    ("where", "options", "said"),
    [
        ("rollout", {"rollout": torch.zeros(6, 40, device="meta")}, "torch cannot give it to numpy"),
        ("training", {"training": torch.zeros(6, 40).to_sparse()}, "torch cannot give it to numpy"),
        ("rollout", {"rollout": torch.zeros(6, 40, dtype=torch.int64)}, "not int64"),
        ("rollout", {"rollout": torch.zeros(6, 40, dtype=torch.complex64)}, "not complex64"),
        ("rollout", {"rollout": torch.zeros(6, 40, 1000)}, "shape (6, 40, 1000) is neither (N,) nor (B, L)"),
        ("rollout", {"rollout": [torch.tensor(-1.0)]}, "one has shape ()"),
        ("mask", {"mask": torch.ones(6, 41)}, "mask has 6 rows of 246 tokens in all"),
        ("mask", {"mask": torch.full((6, 40), 0.5)}, "true and false, or 1 and 0"),
        ("mask", {"mask": torch.ones(6, 40, device="meta")}, "torch cannot give it to numpy"),
        ("token_ids", {"token_ids": torch.zeros(6, 40)}, "integers are needed, not float32"),
        ("lengths", {"lengths": torch.tensor([40.0] * 6)}, "integers are needed, not float32"),
        ("dtype", {"dtype": None}, "the name of a dtype is needed, not None"),
    ],
)
def test_refused_by_name(where, options, said):
    with pytest.raises(InvalidInput) as caught:
        compare_logprobs(**{"rollout": tensors()[0], "training": tensors()[1], "dtype": "bf16", **options})
    assert caught.value.faults[0].where == where
    assert said in str(caught.value)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tensors_on_a_gpu(dtype):
    options = {"mask": torch.tensor(MASK), "token_ids": torch.tensor(IDS), "dtype": "bf16"}
    on_gpu = {name: value.cuda() if isinstance(value, torch.Tensor) else value for name, value in options.items()}
    left, right = (side.cuda() for side in tensors(dtype, grad=True))
    expected = compare_logprobs(*tensors(dtype), **options)
    assert compare_logprobs(left, right, **on_gpu) == expected
    assert compare_logprobs(list(left), right, **on_gpu) == expected
    assert compare_logprobs(left, right.cpu(), **options) == expected
    assert compare_logprobs(left, left.detach(), dtype="bf16").status is Status.INVALID_ARTIFACT
    held = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    compare_logprobs(left, right, **on_gpu)
    assert torch.cuda.max_memory_allocated() == held

"""The backend ``megatron`` by itself: the conformance kit, what it refuses, and the parallel state it leaves alone."""

from __future__ import annotations

import pytest
import torch

from xcfg.errors import InvalidInput
from xcfg.model.capability import Supported, Unsupported
from xcfg.model.kernel import KernelRequest
from xcfg.testing.kernel_backend_tests import KernelBackendTests
from xcfg_megatron.cross_entropy import CrossEntropy
from xcfg_megatron.descriptors import CROSS_ENTROPY
from xcfg_megatron.importing import megatron


class TestCrossEntropy(KernelBackendTests):
    descriptor = CROSS_ENTROPY
    atol = 2e-6

    def make_backend(self):
        return CrossEntropy()

    def to_engine(self, values):
        return torch.from_numpy(values)

    def to_numpy(self, values):
        return values.detach().numpy()


class TestOddVocabulary(TestCrossEntropy):
    vocab_size = 40009


def _request(**changes) -> KernelRequest:
    known = {"operator": "selected_logprob", "device": "cpu", "dtype": "float32", "vocab_size": 10}
    return KernelRequest(**{**known, **changes})


def _sharding(bounds, vocab_size=10):
    return {
        "bounds": bounds,
        "vocab_size": vocab_size,
        "padded_vocab_size": bounds[-1][1],
        "tp_rank": 0,
        "tp_world": len(bounds),
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"operator": "grpo_loss"}, "megatron implements selected_logprob, not grpo_loss"),
        ({"options": {"block": 3}}, "megatron has no options, and 'block' is given"),
        ({"vocab_size": 0}, "a vocabulary of 0"),
        ({"device": "xpu"}, "megatron runs on cpu and cuda, not on xpu"),
        ({"dtype": "float8_e4m3fn"}, "float32, bfloat16, float16, not float8_e4m3fn"),
        ({"sharding": _sharding([[0, 6], [6, 12]])}, "would give the 2 columns of padding a probability"),
        ({"sharding": _sharding([[0, 6], [6, 10]])}, r"needs equal parts of the vocabulary, not \[4, 6\] columns"),
    ],
)
def test_requests_that_are_refused(changes, words) -> None:
    found = CrossEntropy().probe(_request(**changes))
    assert isinstance(found, Unsupported)
    with pytest.raises(ValueError, match=words), CrossEntropy().bind(_request(**changes)):
        pass


def test_equal_parts_are_taken() -> None:
    assert CrossEntropy().probe(_request(sharding=_sharding([[0, 5], [5, 10]]))) == Supported()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_logits_are_summed_in_float32(dtype) -> None:
    logits = (torch.randn(5, 10, generator=torch.Generator().manual_seed(1)) * 3).to(dtype)
    targets = torch.tensor([0, 9, 3, 3, 1])
    with CrossEntropy().bind(_request(dtype=str(dtype).removeprefix("torch."))) as bound:
        found = bound(logits, targets)
    expected = logits.double().log_softmax(-1).gather(1, targets[:, None])[:, 0]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("logits", "targets", "words"),
    [
        (torch.zeros(2, 10), torch.tensor([0, 10]), "a target is no token of a vocabulary of 10"),
        (torch.zeros(2, 10), torch.tensor([-1, 0]), "a target is no token"),
        (torch.zeros(2, 12), torch.tensor([0, 1]), r"\(2, 12\) on each of 1 ranks is no equal part of 10 columns"),
    ],
)
def test_what_a_call_refuses(logits, targets, words) -> None:
    with CrossEntropy().bind(_request()) as bound, pytest.raises(InvalidInput, match=words):
        bound(logits, targets)


def test_the_gradient_is_that_of_the_logprob() -> None:
    logits = torch.randn(3, 10, generator=torch.Generator().manual_seed(2)).requires_grad_()
    targets = torch.tensor([4, 0, 9])
    with CrossEntropy().bind(_request()) as bound:
        (found,) = torch.autograd.grad(bound(logits, targets).sum(), logits)
    expected = torch.nn.functional.one_hot(targets, 10) - logits.detach().softmax(-1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_the_parallel_state_is_another_only_while_it_runs() -> None:
    state = megatron("parallel_state")
    before, seen = state._TENSOR_MODEL_PARALLEL_GROUP, []
    module = megatron("tensor_parallel.cross_entropy")
    with CrossEntropy().bind(_request()) as bound, pytest.MonkeyPatch.context() as patch:
        plain = module.vocab_parallel_cross_entropy

        def watched(*arguments):
            seen.append(state.get_tensor_model_parallel_world_size())
            return plain(*arguments)

        patch.setattr(module, "vocab_parallel_cross_entropy", watched)
        bound(torch.zeros(1, 10), torch.tensor([3]))
        assert state._TENSOR_MODEL_PARALLEL_GROUP is before
        patch.setattr(module, "vocab_parallel_cross_entropy", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bound(torch.zeros(1, 10), torch.tensor([3]))
    assert state._TENSOR_MODEL_PARALLEL_GROUP is before
    assert seen == [1]


def test_says_what_ran() -> None:
    with CrossEntropy().bind(_request()) as bound:
        found = CrossEntropy().identify(bound)
    assert found.concrete == "megatron.core.tensor_parallel.cross_entropy.vocab_parallel_cross_entropy"
    assert found.build.startswith("megatron-core 0.16")
    with pytest.raises(ValueError, match="not bound by xcfg-megatron"):
        CrossEntropy().identify(torch.log_softmax)

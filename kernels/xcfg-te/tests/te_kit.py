"""The conformance kit on the backend, in a process with Triton's interpreter: ``pytest te_kit.py``."""

from __future__ import annotations

import pytest
import torch

from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.testing.kernel_backend_tests import KernelBackendTests
from xcfg_te import selected_logprob
from xcfg_te.backend import TransformerEngine
from xcfg_te.descriptors import TE
from xcfg_te.source import digest


class TestTransformerEngine(KernelBackendTests):
    descriptor = TE
    atol = 2e-6

    def make_backend(self):
        return TransformerEngine()

    def to_engine(self, values):
        return torch.from_numpy(values)

    def to_numpy(self, values):
        return values.numpy()


class TestOddVocabulary(TestTransformerEngine):
    """Wider than one of the kernel's blocks of 32,768 columns, and no multiple of anything."""

    vocab_size = 40009


def test_says_what_ran() -> None:
    kit = TestTransformerEngine()
    with kit.make_backend().bind(kit.request()) as bound:
        found = kit.make_backend().identify(bound)
    assert found.concrete == (
        "transformer_engine.common.triton.cross_entropy.cross_entropy_forward_kernel (Triton's interpreter)"
    )
    assert f"source sha256 {digest()}" in found.build and f"torch {torch.__version__}" in found.build
    with pytest.raises(ValueError, match="not bound by xcfg-te"):
        kit.make_backend().identify(torch.log_softmax)


def test_the_gradient_can_be_asked_for_twice() -> None:
    """The kernel writes the gradient over what was saved for it."""
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(1)).requires_grad_()
    logprobs = selected_logprob(logits, torch.tensor([0, 49, 7]), vocab_size=50)
    first, second = (torch.autograd.grad(logprobs.sum(), logits, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second) and first.any()


def test_a_row_without_a_target() -> None:
    logits = torch.randn(2, 50, generator=torch.Generator().manual_seed(2)).requires_grad_()
    logprobs = selected_logprob(logits, torch.tensor([-1, 4]), vocab_size=50, ignore_index=-1)
    logprobs.sum().backward()
    assert logprobs[0] == 0 and not logits.grad[0].any() and logits.grad[1].any()


def test_a_first_block_of_minus_infinity_is_never_a_number() -> None:
    """Transformer Engine's own limit: its running maximum is minus infinity less minus infinity."""
    logits = torch.zeros(1, 40009)
    logits[:, :32768] = -torch.inf
    assert selected_logprob(logits, torch.tensor([40000]), vocab_size=40009).isnan().all()


@pytest.mark.parametrize(
    ("logits", "targets", "vocab_size", "error", "words"),
    [
        (torch.zeros(2, 10), torch.tensor([0, 10]), 10, InvalidInput, "target 10 of row 1 is no token"),
        (torch.zeros(2, 10), torch.tensor([0, -100]), 10, InvalidInput, "target -100 of row 1 is no token"),
        (torch.zeros(2, 10), torch.tensor([0]), 10, InvalidInput, "got \\(2, 10\\) and \\(1,\\)"),
        (torch.zeros(2, 10), torch.tensor([0, 1], dtype=torch.int32), 10, InvalidInput, "targets are int64"),
        (torch.zeros(2, 16), torch.tensor([0, 1]), 10, InvalidInput, "has no padding"),
        (torch.zeros(2, 10).half(), torch.tensor([0, 1]), 10, UnsupportedError, "not float16"),
        (torch.zeros(2, 10, device="meta"), torch.tensor([0, 1]), 10, UnsupportedError, "not on meta"),
    ],
)
def test_what_is_refused(logits, targets, vocab_size, error, words) -> None:
    with pytest.raises(error, match=words):
        selected_logprob(logits, targets, vocab_size=vocab_size)

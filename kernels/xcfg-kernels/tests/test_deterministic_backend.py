"""The backend ``deterministic``: its options, what it refuses, what it says ran."""

from __future__ import annotations

from itertools import pairwise

import pytest

from xcfg.errors import UnsupportedError
from xcfg.model.capability import Supported, Unsupported
from xcfg.model.kernel import KernelRequest

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg_kernels import ReductionSpec, Scheme, selected_logprob  # noqa: E402
from xcfg_kernels.deterministic import Deterministic  # noqa: E402


def request(**options) -> KernelRequest:
    return KernelRequest(operator="selected_logprob", device="cpu", dtype="float32", vocab_size=151936, options=options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "(canonical_blocks of 1187, eager)"),
        ({"block": 128, "implementation": "compiled"}, "(canonical_blocks of 128, compiled)"),
        ({"scheme": "order_free"}, "(order_free, eager)"),
    ],
)
def test_says_what_ran(options, said) -> None:
    backend = Deterministic()
    assert backend.probe(request(**options)) == Supported()
    with backend.bind(request(**options)) as bound:
        found = backend.identify(bound)
    assert (found.backend, found.fallback) == ("deterministic", False)
    assert found.concrete == f"xcfg_kernels.logprob.selected_logprob {said}"
    assert found.build == f"torch {torch.__version__}"
    with pytest.raises(ValueError, match="not bound by xcfg-kernels"):
        backend.identify(selected_logprob)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"chunk_rows": 3}, "unknown option 'chunk_rows'; known: scheme, block, implementation"),
        ({"scheme": "kahan"}, "scheme is one of canonical_blocks, order_free, not 'kahan'"),
        ({"implementation": "cuda"}, "implementation is one of eager, compiled, triton, not 'cuda'"),
        ({"block": "16"}, "block must be a whole number of columns or null"),
        ({"block": True}, "block must be a whole number of columns or null"),
        ({"block": 0}, "a block of 0 columns"),
        ({"scheme": "order_free", "block": 16}, "order_free has no blocks"),
        ({"scheme": "order_free", "implementation": "compiled"}, "order_free is implemented in eager torch only"),
        ({"implementation": "triton"}, "set TRITON_INTERPRET=1"),
    ],
)
def test_options_that_are_refused(options, words, monkeypatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    found = Deterministic().probe(request(**options))
    assert isinstance(found, Unsupported) and words in found.reason
    with pytest.raises(ValueError, match=words.split("'")[0]), Deterministic().bind(request(**options)):
        pass


def test_options_reach_the_kernel() -> None:
    random = torch.Generator().manual_seed(1)
    logits, targets = torch.randn(32, 5000, generator=random) * 4, torch.randint(0, 5000, (32,), generator=random)
    results = []
    for options, direct in [
        ({"block": 16}, {"reduction": ReductionSpec(block=16)}),
        ({"scheme": "order_free"}, {"reduction": ReductionSpec(scheme=Scheme.ORDER_FREE)}),
        ({"implementation": "compiled"}, {"implementation": "compiled"}),
    ]:
        with Deterministic().bind(request(**options)) as bound:
            results.append(bound(logits, targets))
        assert torch.equal(results[-1], selected_logprob(logits, targets, **direct))
    assert not any(torch.equal(left, right) for left, right in pairwise(results))


def test_logits_of_a_dtype_without_an_implementation() -> None:
    with Deterministic().bind(request()) as bound, pytest.raises(UnsupportedError, match="float64"):
        bound(torch.zeros(2, 10, dtype=torch.float64), torch.zeros(2, dtype=torch.int64))

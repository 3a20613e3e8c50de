"""The conformance kit on every backend, and what it does not ask of the two that take fp32 rows in chunks."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from xcfg.model.capability import Unsupported
from xcfg.model.kernel import KernelRequest
from xcfg.testing.kernel_backend_tests import KernelBackendTests, oracle
from xcfg.testing.plugin_tests import PluginTests

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg_kernels.descriptors import BACKENDS  # noqa: E402
from xcfg_kernels.deterministic import Deterministic  # noqa: E402
from xcfg_kernels.production import Production  # noqa: E402
from xcfg_kernels.reference import Reference  # noqa: E402

KINDS = (Production, Reference)


class TestKernelsPlugin(PluginTests):
    name = "kernels"
    distribution = "xcfg-kernels"
    engines = ("torch", "numpy")


class _TorchBackend(KernelBackendTests):
    atol = 2e-6

    def to_engine(self, values):
        return torch.from_numpy(values)

    def to_numpy(self, values):
        return values.numpy()


class TestProduction(_TorchBackend):
    descriptor = BACKENDS[0]

    def make_backend(self):
        return Production()


class TestReference(_TorchBackend):
    descriptor = BACKENDS[1]

    def make_backend(self):
        return Reference()


class TestDeterministic(_TorchBackend):
    descriptor = BACKENDS[2]

    def make_backend(self):
        return Deterministic()


class TestOrderFree(TestDeterministic):
    def request(self):
        return evolve(super().request(), options={"scheme": "order_free"})


class TestCompiled(TestDeterministic):
    def request(self):
        return evolve(super().request(), options={"implementation": "compiled", "block": 16})


def _request(**changes) -> KernelRequest:
    return KernelRequest(
        **{"operator": "selected_logprob", "device": "cpu", "dtype": "float32", "vocab_size": 500, **changes}
    )


def _run(kind, logits, targets, **options):
    backend = kind()
    dtype = str(logits.dtype).removeprefix("torch.")
    with backend.bind(_request(dtype=dtype, vocab_size=logits.shape[1], options=options)) as bound:
        return bound(logits, targets)


@pytest.fixture(scope="module")
def case():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(101, 500, generator=generator) * 6
    return logits, torch.randint(0, 500, (101,), generator=generator)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 7, 100, 101, 1000])
def test_chunking_changes_no_bit(kind, rows, case) -> None:
    logits, targets = case
    assert torch.equal(_run(kind, logits, targets, chunk_rows=rows), _run(kind, logits, targets))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_widened_first(kind, dtype, case) -> None:
    logits, targets = case[0].to(dtype), case[1]
    found = _run(kind, logits, targets)
    assert found.dtype == torch.float32
    exact = oracle(logits.float().numpy(), targets.numpy())
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-6, atol=2e-6)


def test_the_two_are_different_kernels(case) -> None:
    first, second = (_run(kind, *case) for kind in KINDS)
    assert not torch.equal(first, second)
    assert float((first - second).abs().max()) < 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"operator": "grpo_loss"}, "not grpo_loss"),
        ({"device": "xpu"}, "not on xpu"),
        ({"dtype": "float8_e4m3fn"}, "not float8_e4m3fn"),
        ({"vocab_size": 0}, "vocabulary of 0"),
        ({"options": {"chunks": 3}}, "unknown option 'chunks'"),
        ({"options": {"chunk_rows": 0}}, "at least 1"),
        ({"options": {"chunk_rows": True}}, "at least 1"),
    ],
)
def test_unknown_requests_are_refused(kind, changes, words) -> None:
    backend, request = kind(), _request(**changes)
    found = backend.probe(request)
    assert isinstance(found, Unsupported)
    assert words in found.reason
    with pytest.raises(ValueError, match=words), backend.bind(request):
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_says_what_ran(kind, case) -> None:
    backend = kind()
    with backend.bind(_request()) as bound:
        found = backend.identify(bound)
    assert found.backend == bound.backend == kind.__name__.lower()
    assert found.concrete.startswith(f"{kind.__module__}.{kind.__name__}.rows")
    assert found.build == f"torch {torch.__version__}"
    assert not found.fallback
    with pytest.raises(ValueError, match="not bound by xcfg-kernels"):
        backend.identify(torch.log_softmax)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_dtypes_that_do_not_fit(kind, case) -> None:
    logits, targets = case
    with pytest.raises(ValueError, match="takes logits"):
        _run(kind, logits, targets[:-1])
    with kind().bind(_request()) as bound, pytest.raises(ValueError, match="float64"):
        bound(logits.double(), targets)

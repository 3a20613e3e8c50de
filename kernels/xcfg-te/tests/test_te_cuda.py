"""The public API on a CUDA device against float64. Skipped, with the backend's own reason, where it does not serve."""

from __future__ import annotations

import pytest

from xcfg.model.capability import Unsupported
from xcfg.model.kernel import KernelRequest
from xcfg.plugin.registry import load_registry

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg_te.backend import TransformerEngine  # noqa: E402


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_against_float64(dtype) -> None:
    request = KernelRequest(operator="selected_logprob", device="cuda", dtype=dtype, vocab_size=151936)
    backend = TransformerEngine()
    capability = backend.probe(request)
    if isinstance(capability, Unsupported):
        pytest.skip(capability.reason)
    random = torch.Generator().manual_seed(0)
    logits = (torch.randn(64, 151936, generator=random) * 4).to("cuda", getattr(torch, dtype))
    targets = torch.randint(0, 151936, (64,), generator=random).cuda()
    with backend.bind(request) as bound:
        before, found = logits.clone(), bound(logits, targets)
        said = backend.identify(bound)
    right = torch.log_softmax(logits.double(), dim=-1).gather(1, targets[:, None])[:, 0]
    gap = float((found - right).abs().max())
    print(f"te on CUDA, {dtype}: max |d| {gap:.2g} from float64; {said.build}")
    assert gap <= load_registry().contract("ws1").max_abs_dlogp["float32"]
    assert torch.equal(logits, before)
    assert said.concrete == "transformer_engine.pytorch.parallel_cross_entropy" and not said.fallback

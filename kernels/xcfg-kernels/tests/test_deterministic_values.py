"""Right values, by float64: ordinary and extreme rows, gradients, ignored rows, what is kept and what is refused."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg.errors import InvalidInput, UnsupportedError  # noqa: E402
from xcfg_kernels import selected_logprob, selected_logprob_and_lse, simulated_logprob_and_lse, unsharded  # noqa: E402

CASES = runpy.run_path(str(Path(__file__).with_name("logprob_cases.py")))
case, even, bits = (CASES[name] for name in ("case", "even", "bits"))
PATHS, DTYPES, CANONICAL, ORDER_FREE = (CASES[name] for name in ("PATHS", "DTYPES", "CANONICAL", "ORDER_FREE"))
by_path = pytest.mark.parametrize(
    ("reduction", "implementation"), PATHS, ids=["canonical-eager", "canonical-compiled", "order-free"]
)


def exact(logits, targets):
    """Logprob and log-sum-exp in float64, by their definition."""
    wide = logits.double()
    highest = wide.amax(1, keepdim=True)
    shifted = wide - highest
    log_sum = shifted.exp().sum(1).log()
    return shifted.gather(1, targets[:, None])[:, 0] - log_sum, highest[:, 0] + log_sum


@by_path
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("vocab", "padded"), [(1001, 1024), (151936, 151936)])
def test_agrees_with_float64(reduction, implementation, dtype, vocab, padded) -> None:
    logits, targets, _ = case(1, 6, vocab, padded, dtype)
    options = {"reduction": reduction, "implementation": implementation}
    found = simulated_logprob_and_lse(list(logits.chunk(4, 1)), targets, even(vocab, padded, 4), **options)
    worst = [
        float((own - right).abs().max()) for own, right in zip(found, exact(logits[:, :vocab], targets), strict=True)
    ]
    print(f"{vocab} columns {dtype}: logprob off by {worst[0]:.2e}, log-sum-exp by {worst[1]:.2e}")
    assert max(worst) < 2e-6


@by_path
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_agrees_with_float64(reduction, implementation, dtype) -> None:
    logits, targets, weights = case(2, 8, 1001, 1024, dtype)
    leaf = logits.clone().requires_grad_()
    options = {"reduction": reduction, "implementation": implementation}
    logprobs, lse = simulated_logprob_and_lse(list(leaf.chunk(2, 1)), targets, even(1001, 1024, 2), **options)
    (logprobs * weights[0] + lse * weights[1]).sum().backward()
    wide = logits[:, :1001].double()
    onehot = torch.nn.functional.one_hot(targets, 1001)
    softmax = (wide - exact(wide, targets)[1][:, None]).exp()
    right = weights[0][:, None] * (onehot - softmax) + weights[1][:, None] * softmax
    assert leaf.grad.dtype == dtype
    step = torch.finfo(dtype).eps
    torch.testing.assert_close(
        leaf.grad[:, :1001].double(), right, rtol=step, atol=2e-7 if dtype != torch.float16 else 1e-7
    )
    assert not leaf.grad[:, 1001:].any()


@by_path
def test_rows_at_the_edge(reduction, implementation) -> None:
    """A block, a shard, all but one column and a whole row of minus infinity; huge, NaN and plus infinity."""
    inf, nan = float("inf"), float("nan")
    logits = torch.zeros(9, 1024)
    logits[0, :128] = -inf
    logits[1, :512] = -inf
    logits[2, :1000] = -inf
    logits[2, 700] = 3.0
    logits[3] = -inf
    logits[4] = 3e38
    logits[5] = -3e38
    logits[6, 400] = nan
    logits[7, 900] = inf
    logits[:, 1000:] = 1e4
    targets = torch.full((9,), 700)
    options = {"reduction": reduction, "implementation": implementation}
    for world in (1, 2, 4, 8):
        given = [shard.contiguous() for shard in logits.chunk(world, 1)]
        logprobs, lse = simulated_logprob_and_lse(given, targets, even(1000, 1024, world), **options)
        right, right_lse = exact(logits[[0, 1, 2, 4, 5, 8], :1000], targets[:6])
        torch.testing.assert_close(logprobs[[0, 1, 2, 4, 5, 8]].double(), right, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(lse[[0, 1, 2, 4, 5, 8]].double(), right_lse, rtol=1e-6, atol=1e-6)
        assert lse[3] == -inf and logprobs[3].isnan()
        assert lse[6:8].isnan().all() and logprobs[6:8].isnan().all()


@by_path
def test_ignored_rows(reduction, implementation) -> None:
    """Logprob exactly 0; no gradient from it, even of a row of NaN; the log-sum-exp is that of the row."""
    logits, targets, _ = case(7, 4, 1000, 1000, torch.float32)
    logits[3] = float("nan")
    targets[[1, 3]] = -100
    leaf = logits.requires_grad_()
    logprobs, lse = selected_logprob_and_lse(leaf, targets, reduction=reduction, implementation=implementation)
    assert logprobs[[1, 3]].tolist() == [0.0, 0.0]
    assert float((lse[:3].detach() - logits[:3].detach().double().logsumexp(1)).abs().max()) < 2e-6
    logprobs.sum().backward()
    assert not leaf.grad[[1, 3]].any()
    assert leaf.grad[[0, 2]].any(dim=1).all()


def test_no_rows() -> None:
    leaf = torch.zeros(0, 1000, requires_grad=True)
    logprobs = selected_logprob(leaf, torch.zeros(0, dtype=torch.int64))
    logprobs.sum().backward()
    assert logprobs.shape == (0,) and leaf.grad.shape == (0, 1000)


@by_path
def test_only_the_logits_and_numbers_of_a_row_are_kept(reduction, implementation) -> None:
    logits, targets, _ = case(8, 4, 1000, 1000)
    leaf = logits.requires_grad_()
    logprobs = selected_logprob(leaf, targets, reduction=reduction, implementation=implementation)
    kept = logprobs.grad_fn.saved_tensors if logprobs._base is None else logprobs._base.grad_fn.saved_tensors
    own = leaf.untyped_storage().data_ptr()
    others = [tensor.numel() for tensor in kept if tensor.untyped_storage().data_ptr() != own]
    assert others == [4] * 4


def test_shapes_and_targets_that_do_not_fit() -> None:
    logits, targets, _ = case(9, 4, 1000, 1024)
    ranks = even(1000, 1024, 2)
    for arguments, words in [
        ((logits, targets[:3]), r"logits \(..., V\) and targets"),
        ((logits, targets.float()), "whole numbers beside the logits, not torch.float32"),
        ((logits, targets, unsharded(1000)), "the logits have 1024 columns, the sharding gives this rank 1000"),
        (
            (logits, targets.index_fill(0, torch.tensor(2), 1000), even(1000, 1024, 1)),
            r"target 1000 at \[2\] is no token",
        ),
        ((logits, -targets - 1), "is no token of a vocabulary of 1024"),
        ((logits[:, :512], targets, ranks), "a vocabulary on 2 ranks needs their process group"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            selected_logprob(*arguments)
    with pytest.raises(InvalidInput, match="2 ranks need as many shards, not 1"):
        simulated_logprob_and_lse([logits[:, :512]], targets, ranks)


def test_layouts_that_would_need_a_copy_are_refused() -> None:
    logits = torch.zeros(3, 5, 1000)
    with pytest.raises(UnsupportedError, match="side by side in memory"):
        selected_logprob(torch.zeros(1000, 4).t(), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(UnsupportedError, match="cannot be seen as rows without a copy"):
        selected_logprob(logits[:, :-1], torch.zeros(3, 4, dtype=torch.int64))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"implementation": "triton"}, "set TRITON_INTERPRET=1 before the process starts"),
        ({"implementation": "compiled", "reduction": ORDER_FREE}, "order_free is implemented in eager torch only"),
    ],
)
def test_what_an_implementation_cannot_do_is_refused(options, words, monkeypatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(UnsupportedError, match=words):
        selected_logprob(torch.zeros(2, 100), torch.zeros(2, dtype=torch.int64), **options)


def test_other_dtypes_and_devices_are_refused() -> None:
    targets = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(UnsupportedError, match="no implementation for float64"):
        selected_logprob(torch.zeros(2, 100, dtype=torch.float64), targets)
    with pytest.raises(UnsupportedError, match="not on meta"):
        selected_logprob(torch.zeros(2, 100, device="meta"), targets.to("meta"))
    with pytest.raises(ValueError, match="cuda-graph"):
        selected_logprob(torch.zeros(2, 100), targets, implementation="cuda-graph")


def test_the_compiler_is_asked_for_first(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnsupportedError, match="needs a C\\+\\+ compiler"):
        selected_logprob(torch.zeros(2, 100), torch.zeros(2, dtype=torch.int64), implementation="compiled")

"""Logits whose shards are looked at together, and how bits are compared. Loaded with ``runpy``."""

from __future__ import annotations

import torch

from xcfg_kernels import ReductionSpec, Scheme, ShardingSpec, even_shards

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
CANONICAL, ORDER_FREE = ReductionSpec(), ReductionSpec(scheme=Scheme.ORDER_FREE)
PATHS = ((CANONICAL, "eager"), (CANONICAL, "compiled"), (ORDER_FREE, "eager"))
LEAK = 1e4
"""What padding columns hold: one of them in a sum would be all of it."""


def case(seed: int, rows: int, vocab: int, padded: int, dtype=torch.bfloat16, scale: float = 4.0):
    """Logits (rows, padded) with :data:`LEAK` in the padding, targets (rows,), weights of both gradients (2, rows)."""
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, vocab, generator=random) * scale
    logits = torch.nn.functional.pad(logits, (0, padded - vocab), value=LEAK).to(dtype)
    targets = torch.randint(0, vocab, (rows,), generator=random)
    return logits, targets, torch.randn(2, rows, generator=random)


def even(vocab: int, padded: int, world: int, rank: int = 0) -> ShardingSpec:
    return even_shards(vocab_size=vocab, padded_vocab_size=padded, tp_world=world, tp_rank=rank)


def bits(values: torch.Tensor) -> torch.Tensor:
    """The same memory as integers: unlike a comparison of floats -0.0 is not 0.0, and NaN is itself."""
    return values.detach().contiguous().view({2: torch.int16, 4: torch.int32}[values.element_size()])


def outcome(run, shards, weights, vocab: int):
    """Bits of logprobs, log-sum-exps and gradients of the vocabulary's columns. Asserts that padding has gradient 0."""
    leaves = [shard.detach().clone().requires_grad_() for shard in shards]
    logprobs, lse = run(leaves)
    ((logprobs * weights[0]).sum() + (lse * weights[1]).sum()).backward()
    gradient = torch.cat([leaf.grad for leaf in leaves], dim=1)
    assert not gradient[:, vocab:].any()
    return bits(logprobs), bits(lse), bits(gradient[:, :vocab])


def same(found, expected) -> bool:
    return all(torch.equal(left, right) for left, right in zip(found, expected, strict=True))

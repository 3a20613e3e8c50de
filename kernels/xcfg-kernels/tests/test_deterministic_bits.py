"""Same bits at any degree, padding, batch size and thread count: forward and gradients, through integer views."""

from __future__ import annotations

import runpy
from functools import partial
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg_kernels import ReductionSpec, ShardingSpec, selected_logprob_and_lse, simulated_logprob_and_lse  # noqa: E402

CASES = runpy.run_path(str(Path(__file__).with_name("logprob_cases.py")))
case, even, outcome, same, bits = (CASES[name] for name in ("case", "even", "outcome", "same", "bits"))
PATHS, DTYPES, CANONICAL, ORDER_FREE = (CASES[name] for name in ("PATHS", "DTYPES", "CANONICAL", "ORDER_FREE"))
WORLDS = (1, 2, 4, 8)
BIG = 151936
PADDED = {2: 152064, 4: 152064, 8: 152576}
"""Megatron's padding of it: to a multiple of 128 times the degree."""

by_path = pytest.mark.parametrize(
    ("reduction", "implementation"), PATHS, ids=["canonical-eager", "canonical-compiled", "order-free"]
)


def whole(logits, targets, weights, vocab, reduction, implementation):
    """One rank, no padding."""
    options = {"reduction": reduction, "implementation": implementation}
    return outcome(
        lambda leaves: selected_logprob_and_lse(leaves[0], targets, **options), [logits[:, :vocab]], weights, vocab
    )


def sharded(logits, targets, weights, sharding, reduction, implementation):
    """Every rank of ``sharding``, played in this process."""
    shards = [logits[:, start:end] for start, end in sharding.bounds]
    options = {"reduction": reduction, "implementation": implementation}
    run = partial(simulated_logprob_and_lse, targets=targets, sharding=sharding, **options)
    return outcome(run, shards, weights, sharding.vocab_size)


def compared(given, vocab, shardings, reduction, implementation) -> int:
    """Asserts that all give the bits of one rank without padding; how many were compared."""
    expected = whole(*given, vocab, reduction, implementation)
    for sharding in shardings:
        cut = (given[0][:, : sharding.padded_vocab_size], *given[1:])
        assert same(sharded(*cut, sharding, reduction, implementation), expected), sharding
    return len(shardings)


@by_path
def test_fifty_seeds_of_a_small_vocabulary(reduction, implementation) -> None:
    """In all three dtypes; the compiled path, which needs a program for each, in bfloat16 here."""
    sizes = ((1024, 1024), (1000, 1024), (1001, 1024))
    count = 0
    for seed in range(50):
        (vocab, padded), dtype = sizes[seed % 3], DTYPES[0 if implementation == "compiled" else seed // 3 % 3]
        given = case(seed, 16, vocab, padded, dtype)
        shardings = [even(vocab, padded, world) for world in WORLDS]
        count += compared(given, vocab, shardings, reduction, implementation)
    print(f"{count} shardings of 16 rows bitwise equal to one rank without padding")


@pytest.mark.full
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_fifty_seeds_compiled_in_other_dtypes(dtype) -> None:
    for seed in range(50):
        given = case(seed, 16, 1001, 1024, dtype)
        assert compared(given, 1001, [even(1001, 1024, world) for world in WORLDS], CANONICAL, "compiled") == 4
    print(f"200 shardings of 16 rows of {dtype} bitwise equal to one rank without padding")


def test_fifty_seeds_of_uneven_shards() -> None:
    for seed in range(50):
        random = torch.Generator().manual_seed(seed)
        cuts = sorted(torch.randperm(1039, generator=random)[:3].add(1).tolist())
        bounds = list(zip([0, *cuts], [*cuts, 1040], strict=True))
        sharding = ShardingSpec(bounds=bounds, vocab_size=1001, padded_vocab_size=1040, tp_rank=0, tp_world=4)
        given = case(seed, 16, 1001, 1040, DTYPES[seed % 3])
        assert compared(given, 1001, [sharding], ORDER_FREE, "eager") == 1
    print("50 uneven shardings bitwise equal to one rank")


@by_path
@pytest.mark.parametrize("vocab", [33, 1001, 5000])
def test_a_row_alone_has_the_bits_it_has_among_64(reduction, implementation, vocab) -> None:
    logits, targets, weights = case(3, 64, vocab, vocab)
    together = whole(logits, targets, weights, vocab, reduction, implementation)
    for row in range(64):
        own = slice(row, row + 1)
        alone = whole(logits[own], targets[own], weights[:, own], vocab, reduction, implementation)
        assert same(alone, [values[own] for values in together]), row


@by_path
@pytest.mark.parametrize("rows", [1, 2, 64])
def test_one_thread_and_two(reduction, implementation, rows, threads) -> None:
    given = case(4, rows, 20000, 20000)
    found = []
    for count in (1, 2):
        threads(count)
        found.append(whole(*given, 20000, reduction, implementation))
    assert same(*found)


@pytest.mark.parametrize("implementation", ["eager", "compiled"])
@pytest.mark.parametrize("block", [16, 24, 1000, 4096, 16384])
def test_other_blocks(block, implementation) -> None:
    """Whether the blocks fill the shards or not, a row alone has the bits it has among others."""
    vocab, rows, reduction = 33000, 5, ReductionSpec(block=block)
    logits, targets, weights = case(5, rows, vocab, 4 * 16384)
    shardings = [even(vocab, 4 * 16384, 4)] if 16384 % block == 0 else []
    assert compared((logits, targets, weights), vocab, shardings, reduction, implementation) == len(shardings)
    expected = whole(logits, targets, weights, vocab, reduction, implementation)
    for row in range(rows):
        own = slice(row, row + 1)
        alone = whole(logits[own], targets[own], weights[:, own], vocab, reduction, implementation)
        assert same(alone, [values[own] for values in expected]), row


def test_rows_of_a_wider_tensor_and_more_dimensions() -> None:
    logits, targets, _ = case(6, 12, 1000, 1024)
    expected = selected_logprob_and_lse(logits[:, :1000].contiguous(), targets)
    found = selected_logprob_and_lse(logits[:, :1000], targets)
    shaped = selected_logprob_and_lse(logits[:, :1000].reshape(3, 4, 1000), targets.view(3, 4))
    assert shaped[0].shape == (3, 4)
    assert same([bits(values) for values in found], [bits(values) for values in expected])
    assert same([bits(values.flatten()) for values in shaped], [bits(values) for values in expected])


@by_path
def test_the_large_vocabulary(reduction, implementation) -> None:
    given = case(0, 4, BIG, BIG)
    assert compared(given, BIG, [even(BIG, BIG, world) for world in WORLDS], reduction, implementation) == 4


@pytest.mark.full
@by_path
@pytest.mark.parametrize("seed", range(3))
def test_the_large_vocabulary_in_full(reduction, implementation, seed, threads) -> None:
    """Unpadded shards, then padded ones in blocks that fit them, then both in blocks that fit both, for 64 rows."""
    blocks = (None, 128, 16) if reduction is CANONICAL else (None,) * 3
    unpadded = [even(BIG, BIG, world) for world in WORLDS]
    padded = [even(BIG, PADDED[world], world) for world in PADDED]
    given = case(seed, 64, BIG, max(PADDED.values()))
    count = 0
    for block, shardings in zip(blocks, (unpadded, padded, unpadded + padded), strict=True):
        chosen = ReductionSpec(block=block) if block else reduction
        count += compared(given, BIG, shardings, chosen, implementation)
        expected = whole(*given, BIG, chosen, implementation)
        alone = whole(given[0][:1], given[1][:1], given[2][:, :1], BIG, chosen, implementation)
        assert same(alone, [values[:1] for values in expected])
        threads(1)
        assert same(whole(*given, BIG, chosen, implementation), expected)
        threads(2)
        count += 2
    print(f"seed {seed}: {count} comparisons of {BIG} columns bitwise equal")

"""Which shardings and reductions are taken, and what the refusal of the others says."""

from __future__ import annotations

import pytest

from xcfg.errors import InvalidInput
from xcfg_kernels import ReductionSpec, Scheme, ShardingSpec, even_shards, unsharded
from xcfg_kernels.layout import Layout
from xcfg_kernels.reduction import check_reduction, default_block

ORDER_FREE = ReductionSpec(scheme=Scheme.ORDER_FREE)


def spec(**changes) -> ShardingSpec:
    given = {"bounds": [(0, 8), (8, 16)], "vocab_size": 15, "padded_vocab_size": 16, "tp_rank": 1, "tp_world": 2}
    return ShardingSpec(**{**given, **changes})


def test_columns_of_a_rank() -> None:
    second = spec()
    assert (second.start, second.columns, second.real_columns) == (8, 8, 7)
    assert (second.at(0).start, second.at(0).real_columns) == (0, 8)
    assert spec(vocab_size=5).real_columns == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bounds": []}, "2 ranks need as many bounds, 0 are given"),
        ({"bounds": [(0, 16)]}, "2 ranks need as many bounds, 1 are given"),
        ({"tp_world": 3}, "3 ranks need as many bounds, 2 are given"),
        ({"tp_rank": 2}, "rank 2 is not one of 2"),
        ({"tp_rank": -1}, "rank -1 is not one of 2"),
        ({"bounds": [(0, 9), (8, 16)]}, "rank 1 starts at column 8, inside rank 0, which ends at 9: shards overlap"),
        ({"bounds": [(0, 7), (8, 16)]}, "columns 7 to 8 belong to no rank"),
        ({"bounds": [(1, 8), (8, 16)]}, "rank 0 starts at column 1, not 0"),
        ({"bounds": [(0, 16), (16, 16)]}, "rank 1 has no column"),
        ({"bounds": [(8, 16), (0, 8)]}, "shards overlap"),
        ({"padded_vocab_size": 15}, "ends at column 16, the padded vocabulary at 15: declare the padding"),
        ({"padded_vocab_size": 14}, "14 padded columns are fewer than the 15 of the vocabulary"),
        ({"vocab_size": 0}, "a vocabulary of 0 has no token"),
        ({"head": "row-parallel"}, "row-parallel head gives partial sums"),
        ({"context_parallel_size": 0}, "context_parallel_size must be at least 1"),
    ],
)
def test_contradicting_shardings_are_refused(changes, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        spec(**changes)


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        spec(head="row-parallel", tp_rank=5, bounds=[(0, 9), (8, 16)])
    assert len(refused.value.faults) == 3


def test_equal_shards() -> None:
    assert even_shards(vocab_size=10, padded_vocab_size=12, tp_world=3, tp_rank=2).bounds == ((0, 4), (4, 8), (8, 12))
    with pytest.raises(InvalidInput, match="10 columns do not split into 3 equal shards"):
        even_shards(vocab_size=10, padded_vocab_size=10, tp_world=3, tp_rank=0)


@pytest.mark.parametrize(
    ("vocab", "width"),
    [(151936, 1187), (128256, 1002), (256000, 2000), (32000, 250), (50257, 128), (1024, 128), (33, 128), (2**20, 128)],
)
def test_default_block(vocab, width) -> None:
    assert default_block(vocab) == width


@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_the_default_block_fits_unpadded_shards(world) -> None:
    check_reduction(
        ReductionSpec(), even_shards(vocab_size=151936, padded_vocab_size=151936, tp_world=world, tp_rank=0)
    )


@pytest.mark.parametrize(("world", "padded"), [(2, 152064), (4, 152064), (8, 152576)])
def test_padded_shards_need_another_block(world, padded) -> None:
    sharding = even_shards(vocab_size=151936, padded_vocab_size=padded, tp_world=world, tp_rank=0)
    with pytest.raises(
        InvalidInput, match=rf"column {padded // world} is a shard boundary but no edge of a block of 1187"
    ):
        check_reduction(ReductionSpec(), sharding)
    for block in (128, 16):
        check_reduction(ReductionSpec(block=block), sharding)


def test_the_refusal_names_a_block_that_fits() -> None:
    sharding = even_shards(vocab_size=151936, padded_vocab_size=152064, tp_world=4, tp_rank=0)
    with pytest.raises(InvalidInput, match="blocks of 1152 would fit"):
        check_reduction(ReductionSpec(), sharding)
    check_reduction(ReductionSpec(block=1152), sharding)
    odd = even_shards(vocab_size=22, padded_vocab_size=22, tp_world=2, tp_rank=0)
    with pytest.raises(InvalidInput, match="blocks of 11 would fit"):
        check_reduction(ReductionSpec(), odd)
    prime = even_shards(vocab_size=15, padded_vocab_size=16, tp_world=16, tp_rank=0)
    with pytest.raises(InvalidInput, match="no block fits; use the scheme order_free"):
        check_reduction(ReductionSpec(), prime)


def test_uneven_shards_are_for_order_free() -> None:
    uneven = spec(bounds=[(0, 3), (3, 16)])
    with pytest.raises(InvalidInput, match=r"needs shards of one width, these have \[3, 13\]"):
        check_reduction(ReductionSpec(block=1), uneven)
    check_reduction(ORDER_FREE, uneven)


def test_a_boundary_in_the_padding_is_no_edge_to_keep() -> None:
    sharding = even_shards(vocab_size=64, padded_vocab_size=192, tp_world=4, tp_rank=3)
    layout = Layout(sharding=sharding, reduction=ReductionSpec(block=16))
    assert (layout.slots, layout.counts) == (3, (3, 1, 0, 0))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"block": 0}, r"a block of 0 columns is not in \[1, 16384\]"),
        ({"block": 16385}, "a block of 16385 columns"),
        ({"scheme": Scheme.ORDER_FREE, "block": 128}, "order_free has no blocks"),
    ],
)
def test_reductions_that_are_refused(changes, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        ReductionSpec(**changes)


def test_order_free_has_room_for_so_many_columns() -> None:
    with pytest.raises(InvalidInput, match="at most 4194304 columns"):
        check_reduction(ORDER_FREE, unsharded(2**22 + 1))


def test_records_differ_where_bits_may() -> None:
    records = [ReductionSpec().record(151936), ReductionSpec(block=128).record(151936), ORDER_FREE.record(151936)]
    assert [record["block"] for record in records] == [1187, 128, None]
    assert records[0]["scheme"] == "canonical_blocks" and records[2]["accumulation"] == "int64 fixed point, 2**-40"
    assert all(record["collective"] == "all_gather, transport only" for record in records)

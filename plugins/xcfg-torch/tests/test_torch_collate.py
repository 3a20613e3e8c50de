"""Which rows pass together, worked out by hand."""

from __future__ import annotations

import pytest
import torch

from xcfg.model.sample import TokenBatch
from xcfg_torch.collate import Collation, Part, Step, pad, steps_of_rank

OWN, REPLICA, FILLER = Part.OWN, Part.REPLICA, Part.FILLER


def _plan(lengths, *, size, micro=None, rank=0, world_size=1):
    steps = steps_of_rank(
        lengths, Collation(size=size, micro=micro, padding_side="right"), rank=rank, world_size=world_size
    )
    return [(step.batch, step.rows, step.width, step.part) for step in steps]


def test_one_rank_takes_every_batch_in_order() -> None:
    assert _plan([3, 9, 4, 5, 6], size=2) == [
        (0, (0, 1), 9, OWN),
        (1, (2, 3), 5, OWN),
        (2, (4,), 6, OWN),
    ]


def test_two_ranks_share_the_same_batches() -> None:
    lengths = [3, 9, 4, 5, 6]
    assert _plan(lengths, size=2, rank=0, world_size=2) == [(0, (0, 1), 9, OWN), (2, (4,), 6, OWN)]
    # rank 1 has no third batch: it repeats the one of its round, because the other rank's collectives need it
    assert _plan(lengths, size=2, rank=1, world_size=2) == [(1, (2, 3), 5, OWN), (2, (4,), 6, REPLICA)]


def test_micro_batches_keep_the_width_of_their_batch() -> None:
    assert _plan([3, 9, 4], size=3, micro=2) == [(0, (0, 1), 9, OWN), (0, (2,), 9, OWN)]


def test_ranks_run_equally_many_passes() -> None:
    lengths = [5, 6, 7, 8, 9]
    assert _plan(lengths, size=4, micro=1, rank=1, world_size=2) == [(1, (4,), 9, OWN)] + [(1, (4,), 9, FILLER)] * 3
    for world_size in (1, 2, 3):
        counts = {len(_plan(lengths, size=4, micro=1, rank=rank, world_size=world_size)) for rank in range(world_size)}
        assert len(counts) == 1


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
@pytest.mark.parametrize("micro", [None, 1, 2])
def test_every_row_is_owned_once_with_the_same_shape(world_size, micro) -> None:
    lengths = [4, 8, 3, 9, 2, 7, 5]
    owned: dict[int, tuple[int, int]] = {}
    for rank in range(world_size):
        for _, rows, width, part in _plan(lengths, size=3, micro=micro, rank=rank, world_size=world_size):
            if part is OWN:
                for row in rows:
                    assert row not in owned
                    owned[row] = (len(rows), width)
    single = {row: (len(rows), width) for _, rows, width, _ in _plan(lengths, size=3, micro=micro) for row in rows}
    assert owned == single


@pytest.mark.parametrize(
    ("side", "counted", "ids", "positions"),
    [
        ("right", "sequential", [[1, 2, 3, 9, 9], [4, 5, 6, 7, 8]], [[0, 1, 2, 0, 0], [0, 1, 2, 3, 4]]),
        ("left", "sequential", [[9, 9, 1, 2, 3], [4, 5, 6, 7, 8]], [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]),
        ("right", "padded", [[1, 2, 3, 9, 9], [4, 5, 6, 7, 8]], [[0, 1, 2, 0, 0], [0, 1, 2, 3, 4]]),
        ("left", "padded", [[9, 9, 1, 2, 3], [4, 5, 6, 7, 8]], [[0, 0, 2, 3, 4], [0, 1, 2, 3, 4]]),
    ],
)
def test_padding_by_hand(side, counted, ids, positions) -> None:
    batch = TokenBatch(
        ids=["a", "b"], prompts=[[1], [4, 5]], responses=[[2, 3], [6, 7, 8]], action_masks=[[True] * 2, [True] * 3]
    )
    step = Step(batch=0, rows=(0, 1), width=5, part=OWN)
    collation = Collation(size=2, micro=None, padding_side=side, positions=counted)
    padded = pad(batch, step, collation, pad_id=9, device=torch.device("cpu"))
    assert padded.input_ids.tolist() == ids
    assert padded.position_ids.tolist() == positions
    assert padded.attention_mask.tolist() == [[int(token != 9) for token in row] for row in ids]
    assert padded.input_ids[padded.response].tolist() == [2, 3, 6, 7, 8]

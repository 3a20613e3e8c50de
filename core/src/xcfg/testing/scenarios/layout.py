"""How the rows of a recording lie: lengths, prompts, turns, ranks, micro-batches, paddings and steps."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from xcfg.diagnosis.observed import Rows


@frozen(kw_only=True)
class Shape:
    """Size of one instance: ``tokens`` judged in all, in ``rows`` sequences, of a model with ``vocabulary`` tokens."""

    rows: int = 24
    tokens: int = 2000
    vocabulary: int = 200
    dtype: str = "bfloat16"


@frozen(kw_only=True)
class Wants:
    """What a scenario needs of the layout; what it leaves open is drawn.

    ``steps`` and ``ranks`` are least numbers, ``packed`` says packed (True) or left-padded (False), ``equal`` makes
    all rows as long as each other, ``turns`` puts masked tokens between judged ones.
    """

    steps: int = 1
    ranks: int = 1
    packed: bool | None = None
    equal: bool | None = None
    turns: bool | None = None


@frozen(kw_only=True, eq=False)
class Layout:
    """``rows`` with every column present, ``position`` (N,) and ``row`` (N,) int64."""

    rows: Rows
    position: np.ndarray
    row: np.ndarray


def draw_layout(generator: np.random.Generator, shape: Shape, wants: Wants) -> Layout:
    """Rows of unequal length unless told otherwise, prompts that a few rows share, batches of a few rows.

    Rows of equal length hold no more tokens than asked for, and fewer where they do not divide.
    """

    def chosen(wish: bool | None, chance: float) -> bool:
        drawn = bool(generator.random() < chance)
        return drawn if wish is None else wish

    count = shape.rows
    equal = chosen(wants.equal, 0.1)
    lengths = np.full(count, shape.tokens // count) if equal else _lengths(generator, shape)
    row = np.repeat(np.arange(count), lengths)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    position = within + (_gaps(generator, row, within) if chosen(wants.turns, 0.2) else 0)
    last = position[np.cumsum(lengths) - 1]
    shared = int(generator.choice([1, 2, 4]))
    prompt = np.repeat(generator.integers(8, 160, count), shared)[:count]
    batch = _batches(generator, count)
    packed = chosen(wants.packed, 0.4)
    if not packed and all(len(np.unique(prompt[batch == number])) == 1 for number in batch):
        prompt[::2] += 16  # left-padded, yet no row needed padding: make every other prompt a little longer
    longest = np.array([prompt[batch == number].max() for number in batch])
    ranks = max(wants.ranks, int(generator.choice([1, 2, 4, 8])))
    steps = max(wants.steps, int(generator.choice([1, 1, 2, 4])))
    rows = Rows(
        length=lengths,
        prompt_length=prompt,
        response_length=last + 1 + generator.integers(0, 2, count),
        rollout_rank=np.arange(count) // shared % max(1, ranks // int(generator.choice([1, 2]))),
        train_rank=batch % ranks,
        padding=np.zeros(count, np.int64) if packed else longest - prompt,
        batch=batch,
        step=np.arange(count) * steps // count + int(generator.choice([0, 1, 40])),
    )
    return Layout(rows=rows, position=position, row=row)


def _lengths(generator: np.random.Generator, shape: Shape) -> np.ndarray:
    """(R,) lengths of at least 4 (or what there is) that sum to the tokens asked for."""
    least = min(4, shape.tokens // shape.rows)
    share = generator.lognormal(0, 0.5, shape.rows)
    edges = np.rint(np.cumsum(share) / share.sum() * (shape.tokens - least * shape.rows)).astype(np.int64)
    return np.diff(edges, prepend=0) + least


def _gaps(generator: np.random.Generator, row: np.ndarray, within: np.ndarray) -> np.ndarray:
    """(N,) masked tokens before each judged one: a tool's answer every 20 to 60 tokens, none before the first."""
    turn = (generator.random(len(row)) < 1 / 40) & (within > 0)
    jump = np.cumsum(np.where(turn, generator.integers(5, 40, len(row)), 0))
    start = np.concatenate([[True], row[1:] != row[:-1]])
    gaps: np.ndarray = jump - np.repeat(jump[start], np.bincount(row)[np.bincount(row) > 0])
    return gaps


def _batches(generator: np.random.Generator, count: int) -> np.ndarray:
    """(R,) micro-batch of each row: runs of two to five rows."""
    return np.repeat(np.arange(count), generator.integers(2, 6, count))[:count]

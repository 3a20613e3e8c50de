"""Which sequences pass the model together, and the padded tensors they pass as.

Batches are formed from the token batch in order, whatever the number of ranks, and dealt to the ranks in turn: the
shapes of the forward passes do not depend on the world size.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from attrs import frozen

from xcfg.model.sample import TokenBatch

if TYPE_CHECKING:
    import torch


SEQUENTIAL = "sequential"
PADDED = "padded"


class Part(StrEnum):
    """Why a rank runs a forward pass: for its rows, or only because the other ranks' collectives need it."""

    OWN = "own"
    REPLICA = "replica"
    FILLER = "filler"


@frozen(kw_only=True)
class Collation:
    """Sequences a batch (``size``), rows a forward pass (``micro``; None is the whole batch), and padding side.

    ``positions`` count from the first token of a sequence (``sequential``) or the first column of its row (``padded``).
    Rows are padded to a ``multiple`` of columns, which ranks that share rows need. ``packed``: the sequences of a pass
    lie end to end in one row.
    """

    size: int
    micro: int | None
    padding_side: str
    positions: str = SEQUENTIAL
    multiple: int = 1
    packed: bool = False

    def width(self, lengths: Sequence[int], rows: Sequence[int], together: Sequence[int]) -> int:
        """Columns of a pass over ``rows``, of sequences of ``lengths``, whose batch holds the rows ``together``."""
        taken = sum(lengths[row] for row in rows) if self.packed else max(lengths[row] for row in together)
        return -(-taken // self.multiple) * self.multiple


@frozen(kw_only=True)
class Step:
    """One forward pass: sequences ``rows`` of collated batch ``batch``, in rows of ``width`` columns."""

    batch: int
    rows: tuple[int, ...]
    width: int
    part: Part


@frozen(kw_only=True, eq=False)
class Padded:
    """A padded micro-batch, all (B, T): ids, mask and positions int64, ``response`` bool True on response tokens.

    ``blocks`` (B, T) int64 numbers the sequences of a row that holds several; None where each has its own.
    """

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    position_ids: torch.Tensor
    response: torch.Tensor
    blocks: torch.Tensor | None = None

    @property
    def first_columns(self) -> torch.Tensor:
        """(B,) the column of the first token of each row."""
        return self.attention_mask.argmax(dim=1)

    @property
    def response_lengths(self) -> torch.Tensor:
        """(B,) response tokens of each row."""
        return self.response.sum(dim=1)

    @property
    def prompt_lengths(self) -> torch.Tensor:
        """(B,) prompt tokens of each row."""
        return self.attention_mask.sum(dim=1) - self.response_lengths


def steps_of_rank(lengths: Sequence[int], collation: Collation, *, rank: int, world_size: int) -> tuple[Step, ...]:
    """The forward passes of one rank. Every rank gets equally many, as collectives require.

    In a round in which a rank has no batch it repeats the round's first one (``REPLICA``); where another rank has more
    micro-batches it repeats its own first one (``FILLER``). Rows of such passes are dropped.
    """
    batches = [
        tuple(range(start, min(start + collation.size, len(lengths))))
        for start in range(0, len(lengths), collation.size)
    ]
    steps: list[Step] = []
    for first in range(0, len(batches), world_size):
        dealt = range(first, min(first + world_size, len(batches)))
        mine = first + rank if first + rank in dealt else first
        part = Part.OWN if mine == first + rank else Part.REPLICA
        micros = _split(batches[mine], collation.micro)
        count = max(len(_split(batches[index], collation.micro)) for index in dealt)
        passes = [(rows, part) for rows in micros] + [(micros[0], Part.FILLER)] * (count - len(micros))
        steps += [
            Step(batch=mine, rows=rows, width=collation.width(lengths, rows, batches[mine]), part=why)
            for rows, why in passes
        ]
    return tuple(steps)


def _split(rows: tuple[int, ...], micro: int | None) -> list[tuple[int, ...]]:
    size = micro or len(rows)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def pad(batch: TokenBatch, step: Step, collation: Collation, *, pad_id: int, device: torch.device) -> Padded:
    """The tensors of one step. Positions count from 0 as the collation says; padding has position 0."""
    import torch

    shape = (len(step.rows), step.width)
    ids = torch.full(shape, pad_id, dtype=torch.int64)
    mask = torch.zeros(shape, dtype=torch.int64)
    positions = torch.zeros(shape, dtype=torch.int64)
    response = torch.zeros(shape, dtype=torch.bool)
    for at, row in enumerate(step.rows):
        tokens = (*batch.prompts[row], *batch.responses[row])
        start = step.width - len(tokens) if collation.padding_side == "left" else 0
        place = slice(start, start + len(tokens))
        ids[at, place] = torch.tensor(tokens, dtype=torch.int64)
        mask[at, place] = 1
        positions[at, place] = torch.arange(len(tokens)) + (start if collation.positions == PADDED else 0)
        response[at, start + len(batch.prompts[row]) : start + len(tokens)] = True
    return Padded(
        input_ids=ids.to(device),
        attention_mask=mask.to(device),
        position_ids=positions.to(device),
        response=response.to(device),
    )

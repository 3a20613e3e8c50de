"""What one forward pass got: the shape of its input, its mask, and how its positions count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from xcfg_torch.collate import PADDED, SEQUENTIAL
from xcfg_torch.packing import block_causal

if TYPE_CHECKING:
    import torch

_BLOCKED = 4  # dimensions of a mask that says for each query which keys it sees


@frozen(kw_only=True)
class ForwardSeen:
    """One forward pass: rows and columns of its input, and where its attention mask had zeros.

    ``positions`` are the ways of counting that the positions of its tokens agree with, ``packed`` whether a row held
    more than one first token, and ``blocks`` then the number of sequences that its mask kept apart, 0 where it did not.
    ``past`` columns were cached, and the mask covered ``columns``.
    """

    rows: int
    width: int
    padding: str
    positions: frozenset[str] = frozenset()
    packed: bool = False
    blocks: int = 0
    past: int = 0
    columns: int = 0

    @property
    def sequences(self) -> int:
        """Sequences that passed: one a row, unless the mask kept several of a row apart."""
        return self.blocks or self.rows


def forward_seen(ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> ForwardSeen:
    """With cached keys the mask (B, S) also covers what went before ``ids`` and ``positions`` (B, T).

    A mask (B, 1, T, T) is bool, or 0 where a query sees a key and negative elsewhere.
    """
    import torch

    if mask.ndim == _BLOCKED:
        return _blocks_seen(ids, mask, positions)
    columns = slice(mask.shape[1] - ids.shape[1], None)
    real = mask[:, columns].bool()
    ways = {SEQUENTIAL: mask.cumsum(1) - 1, PADDED: torch.arange(mask.shape[1], device=ids.device).expand(mask.shape)}
    agree = (name for name, way in ways.items() if torch.equal(positions[real], way[:, columns][real]))
    return ForwardSeen(
        rows=ids.shape[0],
        width=ids.shape[1],
        padding=_padding(mask),
        positions=frozenset(agree),
        packed=bool((((positions == 0) & real).sum(1) > 1).any()),
        columns=mask.shape[1],
    )


def _blocks_seen(ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> ForwardSeen:
    """Sequences are told by their first positions; the mask must be block-causal over just these."""
    import torch

    first = positions == 0
    blocks = first.cumsum(1)
    allowed = mask if mask.dtype == torch.bool else mask == 0
    apart = torch.equal(allowed, block_causal(blocks)) and bool((blocks > 0).all())
    starts = torch.where(first, torch.arange(ids.shape[1], device=ids.device), 0).cummax(1).values
    counted = torch.equal(positions, torch.arange(ids.shape[1], device=ids.device) - starts)
    return ForwardSeen(
        rows=ids.shape[0],
        width=ids.shape[1],
        padding="none",
        positions=frozenset({SEQUENTIAL} if counted else ()),
        packed=bool((first.sum(1) > 1).any()),
        blocks=int(first.sum()) if apart else 0,
        columns=mask.shape[-1],
    )


def _padding(mask: torch.Tensor) -> str:
    """A row of zeros alone is one whose first token is yet to come, hence padded on the left."""
    left, right = not bool(mask[:, 0].all()), bool((mask.any(1) & ~mask[:, -1].bool()).any())
    if left and right:
        return "mixed"
    return "left" if left else ("right" if right else "none")

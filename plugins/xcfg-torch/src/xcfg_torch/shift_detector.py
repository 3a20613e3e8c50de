"""Finds out which label shift a selection really uses, on logits planted for the purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xcfg.errors import XcfgError
from xcfg.model.sample import TokenBatch
from xcfg_torch.collate import Collation, pad, steps_of_rank
from xcfg_torch.shift import LABEL_SHIFT

if TYPE_CHECKING:
    import torch

    Select = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]

# Every token differs from its neighbours up to two places away, and the two rows differ in length, so that padding
# is exercised and no wrong shift can look right.
_TOY = TokenBatch(
    ids=("short", "long"),
    prompts=((1, 2), (3, 4, 5)),
    responses=((6, 7, 8), (9, 10, 11, 12)),
    action_masks=((True,) * 3, (True,) * 4),
)
_COLUMNS = 13
_CANDIDATES = (0, 1, 2)


def measured_shift(select: Select, *, padding_side: str) -> int:
    """The shift ``s`` for which ``select`` pairs every token at t with the logits at t - s; -1 where none fits.

    Logits are planted that are one-hot on the token ``s`` places ahead; a selection with that shift finds every
    response token at its row's maximum, any other does not.
    """
    import torch

    collation = Collation(size=2, micro=None, padding_side=padding_side)
    lengths = [len(prompt) + len(response) for prompt, response in zip(_TOY.prompts, _TOY.responses, strict=True)]
    (step,) = steps_of_rank(lengths, collation, rank=0, world_size=1)
    padded = pad(_TOY, step, collation, pad_id=0, device=torch.device("cpu"))
    expected = torch.tensor([token for response in _TOY.responses for token in response])
    for shift in _CANDIDATES:
        ahead = padded.input_ids.roll(-shift, dims=1)
        logits = torch.nn.functional.one_hot(ahead, _COLUMNS).float()
        rows, targets = select(logits, padded.input_ids, padded.response)
        if torch.equal(targets, expected) and torch.equal(rows.argmax(dim=-1), targets):
            return shift
    return -1


def check_shift(select: Select, *, padding_side: str) -> None:
    """Raise XcfgError where the selection is off by one."""
    shift = measured_shift(select, padding_side=padding_side)
    if shift != LABEL_SHIFT:
        raise XcfgError(
            f"the label shift is off: logits at t - {shift} score the token at t, not those at t - {LABEL_SHIFT}",
            where="xcfg_torch.shift",
        )

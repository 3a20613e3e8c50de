"""What Transformer Engine takes on trust from the ranks of a group, checked."""

from __future__ import annotations

import torch
import torch.distributed as dist

from xcfg.errors import InvalidInput


def check_group(logits: torch.Tensor, group: dist.ProcessGroup | None, vocab_size: int) -> None:
    """Raises InvalidInput where the ranks' columns are not equal parts of the vocabulary, or their rows differ.

    Transformer Engine takes the columns before a rank's to be its rank times its own columns, and gives every column,
    padding too, its probability. One all-gather of three numbers.
    """
    rows, columns = logits.shape
    own = torch.tensor([rows, columns, vocab_size], dtype=torch.int64, device=logits.device)
    world = 1 if group is None else dist.get_world_size(group)
    every = [torch.empty_like(own) for _ in range(world)]
    if group is None:
        every = [own]
    else:
        dist.all_gather(every, own, group=group)
    for rank, found in enumerate(every):
        for what, this, other in zip(("rows", "columns", "tokens"), own.tolist(), found.tolist(), strict=True):
            if this != other:
                message = f"rank {rank} has {other} {what}, this one {this}: Transformer Engine needs equal parts"
                raise InvalidInput(message, where="logits")
    if columns * world != vocab_size:
        message = f"{world} times {columns} columns are not the vocabulary of {vocab_size}"
        hint = "Transformer Engine has no padding: it would give the other columns a probability"
        raise InvalidInput(message, where="vocab_size", hint=hint)

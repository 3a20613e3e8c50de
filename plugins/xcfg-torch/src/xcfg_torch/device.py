"""Where a rank computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcfg.errors import EnvironmentFault

if TYPE_CHECKING:
    import torch


def device_of_rank(requested: str | None, local_rank: int) -> torch.device:
    """The device of one rank: CUDA device ``local_rank`` where CUDA is asked for or, unasked, available; else the CPU.

    Raises EnvironmentFault where CUDA is asked for and this rank has no device.
    """
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    kind = requested or ("cuda" if count else "cpu")
    if kind == "cpu":
        return torch.device("cpu")
    if local_rank >= count:
        raise EnvironmentFault(
            f"local rank {local_rank} needs a CUDA device of its own and torch sees {count}",
            where="torch.device",
            hint="ask for fewer ranks or for torch.device: cpu",
        )
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device

"""Comparing logprobs inside a training loop: tensors of any device and dtype, over the ranks of a process group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from xcfg.api import compare_logprobs as compare_arrays
from xcfg.model.result import Comparison
from xcfg.model.tolerance import ToleranceContract


def compare_logprobs(
    rollout: Any,
    training: Any,
    *,
    dtype: str | torch.dtype,
    mask: Any = None,
    lengths: Any = None,
    token_ids: Any = None,
    sequence_ids: Sequence[str] | None = None,
    contract: ToleranceContract | Path | None = None,
    clip_range: tuple[float, float] | None = None,
    group: dist.ProcessGroup | None = None,
) -> Comparison:
    """As :func:`xcfg.compare_logprobs`, of tensors (or lists of them) on any device and of any floating-point dtype.

    No gradient is recorded, nothing is written to, and no tensor is kept. bfloat16 is widened to float32, which
    changes no value. With ``group`` every rank of it must make the call with its own part, which may be empty; all get
    the metrics of the whole: sums and counts are added and percentiles are those of all tokens, not averages of the
    ranks' own. A sequence must lie on one rank, and is named by ``sequence_ids`` or its number on that rank.
    """
    with torch.no_grad():
        tensors = {"mask": mask, "lengths": lengths, "token_ids": token_ids}
        options: dict[str, Any] = {name: _plain(value) for name, value in tensors.items()}
        if group is not None:
            options |= {"exchange": GroupExchange(group), "rank": dist.get_rank(group)}
        return compare_arrays(
            _plain(rollout),
            _plain(training),
            dtype=str(dtype),
            sequence_ids=sequence_ids,
            contract=contract,
            clip_range=clip_range,
            **options,
        )


class GroupExchange:
    """Gathers float64 arrays over a process group, on the device its backend works with."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        """The exchange of one comparison."""
        self._group = group
        on_gpu = dist.get_backend(group) == dist.Backend.NCCL
        self._device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")

    def gather(self, values: np.ndarray) -> Sequence[np.ndarray]:
        """The arrays of all ranks, in rank order; their lengths may differ."""
        mine = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64)).to(self._device)
        sizes = self._every(torch.tensor([len(mine)], dtype=torch.int64, device=self._device))
        longest = max(int(size) for size in sizes)
        padded = torch.zeros(max(longest, 1), dtype=torch.float64, device=self._device)
        padded[: len(mine)] = mine
        return [part[: int(size)].cpu().numpy() for part, size in zip(self._every(padded), sizes, strict=True)]

    def _every(self, mine: torch.Tensor) -> list[torch.Tensor]:
        found = [torch.empty_like(mine) for _ in range(dist.get_world_size(self._group))]
        dist.all_gather(found, mine, group=self._group)
        return found


def _plain(value: Any) -> Any:
    """Tensors as numpy arrays on the CPU, without a copy where there is no need; anything else as it is."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        wide = tensor.dtype in (torch.float16, torch.float32, torch.float64)
        if tensor.is_floating_point() and not wide:
            tensor = tensor.float()
        return tensor.cpu().numpy()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value

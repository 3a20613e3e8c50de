"""Comparing logprobs inside a training loop: tensors of any device and dtype, over the ranks of a process group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from xcfg.api import ALONE, announcing
from xcfg.api import compare_logprobs as compare_arrays
from xcfg.errors import InvalidInput
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
    contract: ToleranceContract | Path | str | None = None,
    clip_range: tuple[float, float] | None = None,
    group: dist.ProcessGroup | None = None,
) -> Comparison:
    """As :func:`xcfg.compare_logprobs`, of tensors (or lists of them) on any device and of any floating-point dtype.

    Nested tensors and whatever else torch takes by DLPack serve as well. No gradient is recorded, nothing is written
    to, and no tensor is kept. bfloat16 is widened to float32, which changes no value. With ``group`` every rank of it
    must make the call with its own part, which may be empty, on the same terms; all get the metrics of the whole: sums
    and counts are added and percentiles are those of all tokens, not averages of the ranks' own. Where an argument is
    wrong on one rank, all of them raise. A sequence must lie on one rank, and is named by ``sequence_ids`` or its
    number on that rank.
    """
    exchange = ALONE if group is None else GroupExchange(group)
    given = {"rollout": rollout, "training": training, "mask": mask, "lengths": lengths, "token_ids": token_ids}
    with announcing(exchange):
        host = OnHost()
        arrays = {name: host.arrays(value, name) for name, value in given.items()}
    return compare_arrays(
        **arrays,
        dtype=str(dtype) if isinstance(dtype, torch.dtype) else dtype,
        sequence_ids=sequence_ids,
        contract=contract,
        clip_range=clip_range,
        rank=0 if group is None else dist.get_rank(group),
        exchange=exchange,
    )


class OnHost:
    """Tensors as numpy arrays on the CPU, without a copy where there is no need. Holds them as long as it lives."""

    def __init__(self) -> None:
        """Nothing converted."""
        self._done: dict[tuple[Any, ...], tuple[torch.Tensor, np.ndarray]] = {}

    def arrays(self, value: Any, name: str) -> Any:
        """The tensor, or each of a list or nested tensor; anything else as it is. Raises InvalidInput naming it."""
        if isinstance(value, torch.Tensor) and value.is_nested:
            value = value.detach().unbind()
        if isinstance(value, list | tuple):
            return [self.arrays(item, name) for item in value]
        if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
            return value
        try:
            return self._array(value.detach() if isinstance(value, torch.Tensor) else torch.from_dlpack(value))
        except (RuntimeError, TypeError, BufferError) as error:
            hint = "dense tensors are needed, of a DTensor to_local() or full_tensor()"
            raise InvalidInput(f"torch cannot give it to numpy: {error}", where=name, hint=hint) from error

    def _array(self, tensor: torch.Tensor) -> np.ndarray:
        """One array for the same memory, however often it is handed over: a copy would hide that it is the same."""
        key = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if key not in self._done:
            moved = tensor.cpu()
            narrow = moved.is_floating_point() and moved.dtype not in (torch.float16, torch.float32, torch.float64)
            self._done[key] = tensor, (moved.float() if narrow else moved).numpy(force=True)
        return self._done[key][1]


class GroupExchange:
    """Gathers float64 arrays over a process group, on the device its backend works with."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        """The exchange of one comparison. Raises InvalidInput where this process is not in the group."""
        if dist.get_rank(group) < 0:
            hint = "only the ranks of the group make the call"
            raise InvalidInput("this process is not in the process group", where="group", hint=hint)
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

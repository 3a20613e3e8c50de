"""Activations from stage to stage, and the last stage's logits to all: Megatron's own schedules need CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from xcfg_megatron.importing import megatron
from xcfg_megatron.mapping import Stage

if TYPE_CHECKING:
    import torch


@frozen(kw_only=True, eq=False)
class Pipeline:
    """The place of a rank in its pipeline: its own ``stage``, and the global ranks before, after and at the end."""

    group: Any
    stage: int
    stages: int
    before: int
    after: int
    end: int

    @classmethod
    def of_this_rank(cls) -> Pipeline:
        """From Megatron's parallel state."""
        state = megatron("parallel_state")
        return cls(
            group=state.get_pipeline_model_parallel_group(),
            stage=state.get_pipeline_model_parallel_rank(),
            stages=state.get_pipeline_model_parallel_world_size(),
            before=state.get_pipeline_model_parallel_prev_rank(),
            after=state.get_pipeline_model_parallel_next_rank(),
            end=state.get_pipeline_model_parallel_last_rank(),
        )

    @property
    def first(self) -> bool:
        """Whether this stage has the embedding."""
        return self.stage == 0

    @property
    def last(self) -> bool:
        """Whether this stage has the output head."""
        return self.stage == self.stages - 1

    def holds(self, layers: int) -> Stage:
        """The layers of this stage, of ``layers`` in equal runs."""
        own = layers // self.stages
        numbers = tuple(range(self.stage * own, (self.stage + 1) * own))
        return Stage(layers=numbers, first=self.first, last=self.last)

    def receive(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """What the stage before sent."""
        import torch
        import torch.distributed as dist

        hidden = torch.empty(shape, dtype=dtype, device=device)
        dist.recv(hidden, src=self.before, group=self.group)
        return hidden

    def send(self, hidden: torch.Tensor) -> None:
        """To the next stage."""
        import torch.distributed as dist

        dist.send(hidden.contiguous(), dst=self.after, group=self.group)

    def from_the_end(self, tensor: torch.Tensor) -> torch.Tensor:
        """The last stage's ``tensor`` in that of every stage, of the same shape and dtype."""
        import torch.distributed as dist

        if self.stages > 1:
            dist.broadcast(tensor, src=self.end, group=self.group)
        return tensor

    def from_all(self, value: Any) -> list[Any]:
        """One value a stage, in their order."""
        import torch.distributed as dist

        found: list[Any] = [None] * self.stages
        dist.all_gather_object(found, value, group=self.group)
        return found

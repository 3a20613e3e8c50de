"""Which settings fit together, decided before anything is built; imports no engine."""

from __future__ import annotations

from attrs import frozen

FULL_SHARD = "full_shard"
UNSHARDED = "unsharded"
SHM = "shm"


@frozen(kw_only=True)
class Shape:
    """How ranks hold the model; ``stage`` None is the one that fits ``sharding``, ``inference`` is init_inference."""

    world_size: int = 1
    sharding: str = UNSHARDED
    stage: int | None = None
    inference: bool = False
    tensor_parallel: int = 1
    collective: str | None = None

    @property
    def zero_stage(self) -> int:
        """The stage in force: 3 is the one that shards parameters, 0 leaves everything whole."""
        if self.stage is not None:
            return self.stage
        return 3 if self.sharding == FULL_SHARD else 0

    def fault(self) -> str:
        """Why the settings contradict one another, as a sentence; empty where they do not."""
        return self._stage_fault() or self._parallel_fault() or self._collective_fault()

    def _stage_fault(self) -> str:
        if self.inference and (self.stage or self.sharding == FULL_SHARD):
            return (
                "deepspeed.init_inference has no ZeRO: it needs training.sharding: unsharded and no "
                "deepspeed.zero_stage above 0"
            )
        if self.stage == 3 and self.sharding != FULL_SHARD:
            return f"deepspeed.zero_stage: 3 shards every parameter, and training.sharding says {self.sharding}"
        if self.sharding == FULL_SHARD and self.zero_stage != 3:
            return (
                f"training.sharding: full_shard is ZeRO-3; deepspeed.zero_stage: {self.stage} leaves parameters whole"
            )
        return ""

    def _parallel_fault(self) -> str:
        if self.tensor_parallel == 1:
            return ""
        if not self.inference:
            return "training.tensor_parallel_size above 1 needs deepspeed.init_inference: true"
        if self.tensor_parallel != self.world_size:
            return (
                f"training.tensor_parallel_size: {self.tensor_parallel} of training.world_size: {self.world_size}: "
                "init_inference makes one group, of the first ranks, and its shared-memory sums take in every rank"
            )
        return ""

    def _collective_fault(self) -> str:
        if self.collective == SHM and self.tensor_parallel == 1:
            return "execution.collective: shm carries the sums of tensor parallelism only"
        return ""

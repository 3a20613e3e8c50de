"""The plugin's own knobs and the materializers of the scorer ``deepspeed``, as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.scorer import MaterializerDescriptor
from xcfg_torch.shared import SHARED_ONLY, Only, only_rows, row, shared_materializers

SCORER = "deepspeed"
TARGET = "xcfg_deepspeed.materialize:DeepspeedMaterializer"

ZERO_STAGE = Knob(
    name="deepspeed.zero_stage",
    summary="What ZeRO shards: 0 nothing, 1 optimizer state, 2 gradients too, 3 parameters too; null fits the sharding",
    source_class=SourceClass.REDUCTION,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.TRAINING,
    domain=Domain(kind=Kind.INT, minimum=0, maximum=3, optional=True),
    semantic_scope=1,
    intrusion=1,
)
INIT_INFERENCE = Knob(
    name="deepspeed.init_inference",
    summary="Score through deepspeed.init_inference, which has tensor parallelism, in place of deepspeed.initialize",
    source_class=SourceClass.EXECUTION,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.TRAINING,
    domain=Domain(kind=Kind.BOOL),
    default=False,
    semantic_scope=1,
    intrusion=1,
)

ONLY: Mapping[str, Only] = {
    **{knob: item for knob, item in SHARED_ONLY.items() if knob != "training.tensor_parallel_size"},
    "training.context_parallel_size": Only(
        values=(1,), reason="this scorer does not set up DeepSpeed's sequence parallelism (Ulysses)"
    ),
}
"""Knobs that the scorer ``deepspeed`` has and cannot change."""

MATERIALIZERS = (
    *(item for item in shared_materializers(SCORER, TARGET) if item.knob != "training.tensor_parallel_size"),
    row(SCORER, TARGET, "training.tensor_parallel_size", Lifecycle.ENGINE),
    row(SCORER, TARGET, "training.world_size", Lifecycle.ENGINE),
    row(
        SCORER,
        TARGET,
        "training.sharding",
        Lifecycle.ENGINE,
        ("unsharded", "full_shard"),
        "DeepSpeed replicates no shards over groups of ranks: MiCS is gone, and hpZ adds a copy to full shards",
    ),
    row(
        SCORER,
        TARGET,
        "execution.collective",
        Lifecycle.ENGINE,
        (None, "gloo", "nccl", "shm"),
        "ranks meet over gloo or nccl, and DeepSpeed sums over the tensor-parallel CPUs of a machine in shared memory",
    ),
    row(SCORER, TARGET, "deepspeed.zero_stage", Lifecycle.ENGINE),
    row(SCORER, TARGET, "deepspeed.init_inference", Lifecycle.ENGINE),
    *only_rows(SCORER, TARGET, {name: item for name, item in ONLY.items() if name not in SHARED_ONLY}),
    MaterializerDescriptor(
        knob="training.reduce_dtype",
        scorer=SCORER,
        lifecycle=Lifecycle.ENGINE,
        inapplicable="DeepSpeed's communication_data_type is that of gradients, and this scorer makes none",
    ),
)
"""Every materializer of the scorer ``deepspeed``."""

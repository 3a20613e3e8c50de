"""The plugin's own knob and the materializers of the scorer ``fsdp``, as plain data."""

from __future__ import annotations

from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg_torch.shared import row, shared_materializers

SCORER = "fsdp"
TARGET = "xcfg_fsdp.materialize:FsdpMaterializer"

MASTER_DTYPE = Knob(
    name="fsdp.master_dtype",
    summary="Dtype in which each rank keeps its shards; null is the checkpoint's own",
    source_class=SourceClass.REPRESENTATION,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.TRAINING,
    domain=Domain(
        kind=Kind.STR,
        values=("float32", "bfloat16", "float16"),
        optional=True,
        aliases={"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"},
    ),
    semantic_scope=1,
    intrusion=1,
)


MATERIALIZERS = (
    *shared_materializers(SCORER, TARGET),
    row(SCORER, TARGET, "training.sharding", Lifecycle.ENGINE),
    row(SCORER, TARGET, "training.world_size", Lifecycle.ENGINE),
    row(SCORER, TARGET, "training.context_parallel_size", Lifecycle.ENGINE),
    row(SCORER, TARGET, "training.reduce_dtype", Lifecycle.ENGINE),
    row(
        SCORER,
        TARGET,
        "execution.collective",
        Lifecycle.ENGINE,
        (None, "gloo", "nccl"),
        "the ranks of this scorer meet over one of these",
    ),
    row(SCORER, TARGET, "fsdp.master_dtype", Lifecycle.ENGINE),
)
"""Every materializer of the scorer ``fsdp``."""

"""The plugin's own knob and the materializers of the scorer ``fsdp``, as plain data."""

from __future__ import annotations

from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.scorer import MaterializerDescriptor
from xcfg_torch.knobs import shared_materializers

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


def _engine(knob: str) -> MaterializerDescriptor:
    return MaterializerDescriptor(knob=knob, scorer=SCORER, lifecycle=Lifecycle.ENGINE, target=TARGET)


MATERIALIZERS = (
    *shared_materializers(SCORER, TARGET),
    _engine("training.sharding"),
    _engine("training.world_size"),
    _engine("training.reduce_dtype"),
    _engine("fsdp.master_dtype"),
)
"""Every materializer of the scorer ``fsdp``."""

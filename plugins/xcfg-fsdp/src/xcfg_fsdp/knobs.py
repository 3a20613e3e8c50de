"""The plugin's own knobs, as plain data."""

from __future__ import annotations

from xcfg.model.dtypes import DTYPE_ALIASES
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target

_DTYPE = Domain(kind=Kind.STR, values=("float32", "bfloat16", "float16"), optional=True, aliases=DTYPE_ALIASES)


def _knob(name: str, summary: str, source: SourceClass, domain: Domain, *, scope: int = 1) -> Knob:
    return Knob(
        name=f"fsdp.{name}",
        summary=summary,
        source_class=source,
        lifecycle=Lifecycle.ENGINE,
        targets=Target.TRAINING,
        domain=domain,
        semantic_scope=scope,
        intrusion=1,
    )


MASTER_DTYPE = _knob(
    "master_dtype",
    "Dtype in which each rank keeps its shards; null is the checkpoint's own",
    SourceClass.REPRESENTATION,
    _DTYPE,
)
BUFFER_DTYPE = _knob(
    "buffer_dtype",
    "Dtype to which FSDP1 casts buffers, rotary frequencies among them; null casts none",
    SourceClass.REPRESENTATION,
    _DTYPE,
)
RESHARD = _knob(
    "reshard_after_forward",
    "Whether FSDP2 frees gathered parameters after a module's forward; null frees those of all modules but the root",
    SourceClass.EXECUTION,
    Domain(kind=Kind.BOOL, optional=True),
    scope=0,
)
OFFLOAD = _knob(
    "cpu_offload",
    "Whether FSDP keeps its shards on the CPU between the passes of a module; null is false",
    SourceClass.EXECUTION,
    Domain(kind=Kind.BOOL, optional=True),
    scope=0,
)
LAYOUT = _knob(
    "context_layout",
    "Which columns a context-parallel rank has: one run, or one piece from each end; null is contiguous",
    SourceClass.REDUCTION,
    Domain(kind=Kind.STR, values=("contiguous", "zigzag"), optional=True),
)
CHECKPOINTING = _knob(
    "activation_checkpointing",
    "Whether activations are computed again for the backward pass; null is false",
    SourceClass.EXECUTION,
    Domain(kind=Kind.BOOL, optional=True),
    scope=0,
)
STRATEGY = _knob(
    "strategy",
    "Sharding strategy of FSDP1 by torch's name; null is the plain one of training.sharding",
    SourceClass.REDUCTION,
    Domain(
        kind=Kind.STR,
        values=("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"),
        optional=True,
    ),
    scope=2,
)

KNOBS = (MASTER_DTYPE, BUFFER_DTYPE, RESHARD, OFFLOAD, LAYOUT, CHECKPOINTING, STRATEGY)
"""Every knob that only FSDP has."""

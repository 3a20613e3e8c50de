"""How knobs reach the scorers ``fsdp`` and ``fsdp1``, as plain data."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import MaterializerDescriptor
from xcfg_torch.shared import SHARED_ONLY, Only, only_rows, row, shared_materializers

SCORER = "fsdp"
TARGET = "xcfg_fsdp.materialize:FsdpMaterializer"
FLAT = "fsdp1"
FLAT_TARGET = "xcfg_fsdp.flat.materialize:Fsdp1Materializer"

_NO_BACKWARD = "scoring runs no backward pass that would compute activations again"
_WHOLE_LAYERS = "FSDP1 keeps whole layers in flat parameters: the scorer fsdp splits them"
_WHOLE_ROWS = "every rank of FSDP1 passes whole rows here: the scorer fsdp shares them"
COLLECTIVES = (None, "gloo", "nccl")

_CHECKPOINTING = {"fsdp.activation_checkpointing": Only(values=(None, False), reason=_NO_BACKWARD)}
ONLY: Mapping[str, Only] = {
    **{
        name: item
        for name, item in SHARED_ONLY.items()
        if name not in ("training.tensor_parallel_size", "logp.tp_layout")
    },
    **_CHECKPOINTING,
}
"""Knobs of the scorer ``fsdp`` that cannot be anything else."""

FLAT_ONLY: Mapping[str, Only] = {
    **SHARED_ONLY,
    **_CHECKPOINTING,
    "training.tensor_parallel_size": Only(values=(1,), reason=_WHOLE_LAYERS),
    "training.context_parallel_size": Only(values=(1,), reason=_WHOLE_ROWS),
    "training.compile": Only(
        values=(False,), reason="torch compiles layers of FSDP1 only where it keeps the original parameters"
    ),
}
"""Knobs of the scorer ``fsdp1`` that cannot be anything else."""

_OF_FLAT = {
    "fsdp.strategy": "FSDP2 has no strategies: training.sharding and fsdp.reshard_after_forward say the same",
    "fsdp.buffer_dtype": "FSDP2 casts no buffers",
}
_OF_FULLY_SHARD = {
    "fsdp.reshard_after_forward": "FSDP1's strategy says when parameters are freed: fsdp.strategy",
    "fsdp.context_layout": _WHOLE_ROWS,
}


def _both(scorer: str, target: str, only: Mapping[str, Only]) -> tuple[MaterializerDescriptor, ...]:
    """Rows that the two scorers have in common."""
    return (
        *(item for item in shared_materializers(scorer, target, {}) if item.knob not in only),
        *only_rows(scorer, target, only),
        *(row(scorer, target, name, Lifecycle.ENGINE) for name in _COMMON),
        row(
            scorer,
            target,
            "execution.collective",
            Lifecycle.ENGINE,
            COLLECTIVES,
            "the ranks of this scorer meet over one of these",
        ),
    )


def _meaningless(scorer: str, sentences: Mapping[str, str]) -> Collection[MaterializerDescriptor]:
    return [
        MaterializerDescriptor(knob=knob, scorer=scorer, lifecycle=Lifecycle.ENGINE, inapplicable=sentence)
        for knob, sentence in sentences.items()
    ]


_COMMON = (
    "training.sharding",
    "training.world_size",
    "training.reduce_dtype",
    "fsdp.master_dtype",
    "fsdp.cpu_offload",
)

MATERIALIZERS = (
    *_both(SCORER, TARGET, ONLY),
    *(
        row(SCORER, TARGET, name, Lifecycle.ENGINE)
        for name in (
            "training.tensor_parallel_size",
            "training.context_parallel_size",
            "logp.tp_layout",
            "fsdp.reshard_after_forward",
            "fsdp.context_layout",
        )
    ),
    *_meaningless(SCORER, _OF_FLAT),
)
"""Every materializer of the scorer ``fsdp``."""

FLAT_MATERIALIZERS = (
    *_both(FLAT, FLAT_TARGET, FLAT_ONLY),
    *(row(FLAT, FLAT_TARGET, name, Lifecycle.ENGINE) for name in ("fsdp.strategy", "fsdp.buffer_dtype")),
    *_meaningless(FLAT, _OF_FULLY_SHARD),
)
"""Every materializer of the scorer ``fsdp1``."""

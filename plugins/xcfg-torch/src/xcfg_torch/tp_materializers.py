"""How knobs reach the scorer ``torch-tp``, as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import MaterializerDescriptor
from xcfg_torch.shared import PACKED_BY_OWN_MASK, Only, only_rows, own_materializers, row, shared_materializers

SCORER = "torch-tp"
TARGET = "xcfg_torch.tp_materialize:TensorParallelMaterializer"

_SPLIT = ("training.tensor_parallel_size", "logp.tp_layout")

ONLY: Mapping[str, Only] = {
    **{name: item for name, item in PACKED_BY_OWN_MASK.items() if name not in _SPLIT},
    "training.sharding": Only(values=("unsharded",), reason="the plan splits layers and keeps no shards to gather"),
    "training.context_parallel_size": Only(values=(1,), reason="every rank of this scorer has whole rows"),
    "training.reduce_dtype": Only(values=(None,), reason="the plan sums in the dtype that the layers compute in"),
    "training.compile": Only(
        values=(False,), reason="the plan's collectives around every linear layer were not run inside compiled layers"
    ),
}
"""Knobs that the scorer ``torch-tp`` has and cannot change."""

MATERIALIZERS = (
    *(item for item in shared_materializers(SCORER, TARGET, {}) if item.knob != "training.compile"),
    *only_rows(SCORER, TARGET, ONLY),
    *own_materializers(SCORER, TARGET),
    row(SCORER, TARGET, "training.tensor_parallel_size", Lifecycle.ENGINE),
    row(SCORER, TARGET, "logp.tp_layout", Lifecycle.ENGINE),
    row(
        SCORER,
        TARGET,
        "execution.collective",
        Lifecycle.ENGINE,
        (None, "gloo", "nccl"),
        "the ranks of this scorer meet over one of these",
    ),
    MaterializerDescriptor(
        knob="training.world_size",
        scorer=SCORER,
        lifecycle=Lifecycle.ENGINE,
        inapplicable="the ranks of this scorer are those of training.tensor_parallel_size",
    ),
)
"""Every materializer of the scorer ``torch-tp``."""

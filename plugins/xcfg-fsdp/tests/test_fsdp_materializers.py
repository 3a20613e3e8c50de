"""The kit's checks of every materializer, on one rank in this process."""

from __future__ import annotations

from xcfg_fsdp.flat.materialize import Fsdp1Materializer
from xcfg_fsdp.flat.scorer import Fsdp1Scorer
from xcfg_fsdp.materialize import FsdpMaterializer
from xcfg_fsdp.materializers import FLAT_MATERIALIZERS, MATERIALIZERS
from xcfg_fsdp.scorer import FsdpScorer
from xcfg_fsdp.testing.cases import FLAT, TRAINING
from xcfg_torch.testing.materializing import RANKS, SHARED, OnOneRank, classes

MASTERS = {"values": {"float32": "float32", "bfloat16": "bfloat16", None: "float32"}}
NO_BACKWARD = {"values": {False: False, None: False}, "unsupported": (True,)}
OWN = {
    **SHARED,
    **RANKS,
    "training.sharding": {"values": {"unsharded": "unsharded", "full_shard": "full_shard"}},
    "training.reduce_dtype": {"values": {"float32": "float32", "bfloat16": "bfloat16", None: "bfloat16"}},
    "training.tensor_parallel_size": {"values": {1: 1}},
    "training.context_parallel_size": {"values": {1: 1}},
    "logp.tp_layout": {"values": {"full-vocabulary": "full-vocabulary"}},
    "fsdp.master_dtype": MASTERS,
    "fsdp.cpu_offload": {"values": {False: False, True: True, None: False}},
    "fsdp.activation_checkpointing": NO_BACKWARD,
    "fsdp.reshard_after_forward": {"values": {False: False, True: True, None: "all-but-root"}},
    "fsdp.context_layout": {"values": {None: None}, "none_is_a_value": True},  # one rank shares no row with another
}
FLAT_OWN = {
    **SHARED,
    **RANKS,
    "training.compile": {"values": {False: False}, "unsupported": (True,)},
    "training.sharding": {"values": {"unsharded": "unsharded"}},
    "training.reduce_dtype": {"values": {"float32": "float32", "bfloat16": "bfloat16", None: "bfloat16"}},
    "fsdp.master_dtype": MASTERS,
    "fsdp.cpu_offload": {"values": {False: False, None: False}, "unsupported": (True,)},
    "fsdp.activation_checkpointing": NO_BACKWARD,
    "fsdp.strategy": {"values": {"NO_SHARD": "NO_SHARD", None: "NO_SHARD"}},
    "fsdp.buffer_dtype": {
        "values": {"float32": "float32", "bfloat16": "bfloat16", None: None},
        "none_is_a_value": True,
    },
}


class _Fsdp(OnOneRank):
    scorer, materializer, rows, baseline = FsdpScorer, FsdpMaterializer, MATERIALIZERS, TRAINING


class _Fsdp1(OnOneRank):
    """One rank has nothing to share out: torch puts ``NO_SHARD`` in the place of every other strategy."""

    scorer, materializer, rows = Fsdp1Scorer, Fsdp1Materializer, FLAT_MATERIALIZERS
    baseline = {**FLAT, "training.sharding": "unsharded"}


globals().update({**classes(_Fsdp, OWN), **classes(_Fsdp1, FLAT_OWN)})

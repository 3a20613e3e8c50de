"""The kit's checks of every materializer, on one rank in this process."""

from __future__ import annotations

from xcfg_deepspeed.knobs import MATERIALIZERS
from xcfg_deepspeed.materialize import DeepspeedMaterializer
from xcfg_deepspeed.scorer import DeepspeedScorer
from xcfg_deepspeed.testing.cases import TRAINING
from xcfg_torch.testing.materializing import RANKS, SHARED, OnOneRank, classes

WHOLE = {"training.sharding": "unsharded"}
OWN = {
    **SHARED,
    **RANKS,
    "training.sharding": {"values": {"unsharded": "unsharded", "full_shard": "full_shard"}},
    "training.tensor_parallel_size": {"values": {1: 1}},
    "deepspeed.zero_stage": {"values": {0: 0, 1: 1, 2: 2, None: 0}, "beside": WHOLE},
    "deepspeed.init_inference": {"values": {False: False, True: True}, "beside": WHOLE},
}


class _Deepspeed(OnOneRank):
    scorer, materializer, rows, baseline = DeepspeedScorer, DeepspeedMaterializer, MATERIALIZERS, TRAINING


globals().update(classes(_Deepspeed, OWN))

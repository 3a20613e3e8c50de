"""The kit's checks of every materializer, on one rank in this process."""

from __future__ import annotations

from xcfg_megatron.knobs import MATERIALIZERS
from xcfg_megatron.materialize import MegatronMaterializer
from xcfg_megatron.scorer import MegatronScorer
from xcfg_megatron.testing.cases import TRAINING
from xcfg_torch.testing.materializing import RANKS, SHARED, OnOneRank, classes

OWN = {
    **SHARED,
    **RANKS,
    "training.attention_backend": {"values": {"sdpa": "sdpa", None: "sdpa"}, "unsupported": ("eager",)},
    "training.compile": {"values": {False: False}, "unsupported": (True,)},
    "training.reduce_dtype": {"values": {None: None}, "unsupported": ("float32",), "none_is_a_value": True},
    "training.sharding": {"values": {"unsharded": "unsharded"}, "unsupported": ("full_shard", "hybrid")},
    "training.tensor_parallel_size": {"values": {1: 1}},
    "logp.tp_layout": {"values": {"full-vocabulary": "full-vocabulary"}},
    "layout.vocab_padding": {"values": {1: 1, 96: 96}},
    "megatron.pipeline_parallel_size": {"values": {1: 1}},
    "megatron.layer_spec": {"values": {"local": "local", None: "local"}, "unsupported": ("transformer_engine",)},
    "megatron.padded_vocab_in_normaliser": {
        "values": {False: False, True: True},
        "beside": {"layout.vocab_padding": 96},
    },
}


class _Megatron(OnOneRank):
    scorer, materializer, rows, baseline = MegatronScorer, MegatronMaterializer, MATERIALIZERS, TRAINING


globals().update(classes(_Megatron, OWN))

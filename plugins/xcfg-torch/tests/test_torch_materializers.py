"""The kit's checks of the materializers that test_torch_conformance.py does not look at one by one."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from xcfg.model.scorer import Role
from xcfg.plugin import Settings
from xcfg_torch.materialize import TorchMaterializer
from xcfg_torch.materializers import MATERIALIZERS
from xcfg_torch.scorer import TorchScorer
from xcfg_torch.testing.cases import ROLLOUT, TRAINING, tp_play
from xcfg_torch.testing.materializing import RANKS, SHARED, OnOneRank, classes
from xcfg_torch.tp_materialize import TensorParallelMaterializer
from xcfg_torch.tp_materializers import MATERIALIZERS as TP_MATERIALIZERS
from xcfg_torch.tp_scorer import TensorParallelScorer

ONE_PROCESS = {"values": {1: 1}, "unsupported": (2,)}
WHOLE = {"values": {"unsharded": "unsharded"}, "unsupported": ("full_shard",)}
CHUNKS = {"values": {2: 2, 4: 4}, "beside": {"torch.forward": "chunked_prefill"}}
ON_TRAINING = {
    name: SHARED[name]
    for name in ("training.compile", "execution.threads", "logp.backend", "logp.reduction_policy", "torch.device")
} | {
    "training.world_size": ONE_PROCESS,
    "training.tensor_parallel_size": ONE_PROCESS,
    "training.context_parallel_size": ONE_PROCESS,
    "training.sharding": WHOLE,
}
ON_ROLLOUT = {
    "rollout.dtype": {"values": {"float32": "float32", "bfloat16": "bfloat16"}},
    "rollout.attention_backend": {"values": {"sdpa": "sdpa", "eager": "eager", None: None}},
    "rollout.tensor_parallel_size": ONE_PROCESS,
    "rollout.enforce_eager": {"values": {True: True, None: True}, "unsupported": (False,)},
    "rollout.quantization": {"values": {None: "none"}, "unsupported": ("fp8",)},
    "rollout.kv_cache_dtype": {"values": {None: None}, "unsupported": ("float8_e4m3fn",)},
    "torch.rollout_prefill_chunk": {"values": {2: 2, 4: 4}, "beside": {"rollout.chunked_prefill": True}},
    "execution.prefix_cache": {"values": {False: False, None: False}, "unsupported": (True,)},
    "sampling.logprobs_mode": {
        "values": {"raw_logprobs": "raw_logprobs"},
        "unsupported": ("processed_logprobs",),
    },
    "sampling.temperature": {"values": {1.0: 1.0}, "unsupported": (0.5,)},
    "sampling.top_p": {"values": {1.0: 1.0}, "unsupported": (0.5,)},
    "sampling.top_k": {"values": {0: 0}, "unsupported": (5,)},
}
SPLIT = {
    **{name: members for name, members in SHARED.items() if name != "training.world_size"},
    **RANKS,
    "layout.packing": {"values": {False: False, True: True}},
    "training.compile": {"values": {False: False}, "unsupported": (True,)},
    "training.reduce_dtype": {"values": {None: None}, "unsupported": ("float32",), "none_is_a_value": True},
    "training.sharding": WHOLE,
    "training.tensor_parallel_size": {"values": {1: 1}},
    "logp.tp_layout": {"values": {"full-vocabulary": "full-vocabulary"}},
    "torch.forward": {"values": {"whole": "whole", "cached_decode": "cached_decode"}},
    "torch.prefill_chunk": CHUNKS,
    "torch.sdpa_kernel": {"values": {"math": "math", "flash": "flash", None: None}},
    "torch.norm_kernel": {"values": {"fused": "fused", "unfused": "unfused", None: None}},
    "torch.head_dtype": {
        "values": {"float32": "float32", None: "bfloat16"},
        "beside": {"training.compute_dtype": "bfloat16"},
    },
}


class _Training(OnOneRank):
    scorer, materializer, rows, baseline = TorchScorer, TorchMaterializer, MATERIALIZERS, TRAINING


class _Rollout(_Training):
    role, baseline = Role.ROLLOUT, ROLLOUT


class _Chunked(_Rollout):
    """A pass is held to a number of columns where that number is given."""

    @contextmanager
    def running(self, settings: Settings):
        settings.request["prefill_chunk"] = 2 if settings.engine["chunked_prefill"] else None
        with super().running(settings) as live:
            yield live


class _TensorParallel(OnOneRank):
    scorer, materializer, rows = TensorParallelScorer, TensorParallelMaterializer, TP_MATERIALIZERS
    baseline = tp_play("", ranks=1).knobs

    @pytest.fixture(autouse=True)
    def _accelerate(self):
        pytest.importorskip("accelerate", reason="accelerate is not installed")


ON_CHUNKED = {"rollout.chunked_prefill": {"values": {False: False, True: True}}}
globals().update({**classes(_Training, ON_TRAINING), **classes(_Rollout, ON_ROLLOUT), **classes(_Chunked, ON_CHUNKED)})
globals().update(classes(_TensorParallel, SPLIT))

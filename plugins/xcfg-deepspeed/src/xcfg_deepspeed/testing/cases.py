"""The scorer ``deepspeed`` with chosen knobs, to be played in this process or on launched ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xcfg.model.json import Json
from xcfg_torch.testing.play import Play

TRAINING: Mapping[str, Json] = {
    "training.world_size": 1,
    "training.sharding": "full_shard",
    "training.tensor_parallel_size": 1,
    "training.context_parallel_size": 1,
    "training.compute_dtype": "bfloat16",
    "training.attention_backend": "sdpa",
    "training.output_dtype": None,
    "training.compile": False,
    "execution.collective": None,
    "deepspeed.zero_stage": None,
    "deepspeed.init_inference": False,
    "batch.size": 3,
    "batch.micro_size": None,
    "layout.padding_side": "right",
    "layout.position_ids": "sequential",
    "layout.packing": False,
    "layout.vocab_padding": 1,
    "execution.threads": 1,
    "logp.backend": "production",
    "logp.deterministic": False,
    "logp.tp_layout": "full-vocabulary",
    "logp.reduction_policy": "native",
    "torch.device": "cpu",
}

ENGINES: Mapping[str, Mapping[str, Json]] = {
    "zero-0": {"training.sharding": "unsharded", "deepspeed.zero_stage": 0},
    "zero-1": {"training.sharding": "unsharded", "deepspeed.zero_stage": 1},
    "zero-2": {"training.sharding": "unsharded", "deepspeed.zero_stage": 2},
    "zero-3": {"training.sharding": "full_shard", "deepspeed.zero_stage": 3},
    "inference": {"training.sharding": "unsharded", "deepspeed.init_inference": True},
}
"""Knobs of each kind of engine."""


def deepspeed_play(checkpoint: Path, knobs: Mapping[str, Json] = {}, *, times: int = 1) -> Play:
    """The scorer's baseline with ``knobs`` changed."""
    return Play(
        scorer="xcfg_deepspeed.scorer:DeepspeedScorer",
        materializer="xcfg_deepspeed.materialize:DeepspeedMaterializer",
        knobs={**TRAINING, **knobs},
        backend="xcfg_kernels.production:Production",
        checkpoint=str(checkpoint),
        times=times,
    )

"""The scorer ``fsdp`` with chosen knobs, to be played in this process or on launched ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xcfg.model.json import Json
from xcfg_torch.testing.play import Play

TRAINING: Mapping[str, Json] = {
    "training.world_size": 1,
    "training.sharding": "full_shard",
    "training.compute_dtype": "bfloat16",
    "training.attention_backend": "sdpa",
    "training.output_dtype": None,
    "training.reduce_dtype": None,
    "training.compile": False,
    "training.tensor_parallel_size": 1,
    "training.context_parallel_size": 1,
    "execution.collective": None,
    "fsdp.master_dtype": None,
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


def fsdp_play(checkpoint: Path, knobs: Mapping[str, Json] = {}, *, times: int = 1) -> Play:
    """The scorer's baseline with ``knobs`` changed."""
    return Play(
        scorer="xcfg_fsdp.scorer:FsdpScorer",
        materializer="xcfg_fsdp.materialize:FsdpMaterializer",
        knobs={**TRAINING, **knobs},
        backend="xcfg_kernels.production:Production",
        checkpoint=str(checkpoint),
        times=times,
    )

"""The scorer ``megatron`` with chosen knobs, to be played in this process or on launched ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xcfg.model.json import Json
from xcfg_torch.testing.play import Play

TRAINING: Mapping[str, Json] = {
    "training.world_size": 1,
    "training.sharding": "unsharded",
    "training.compute_dtype": "float32",
    "training.attention_backend": "sdpa",
    "training.output_dtype": None,
    "training.reduce_dtype": None,
    "training.compile": False,
    "training.tensor_parallel_size": 1,
    "training.context_parallel_size": 1,
    "execution.collective": None,
    "megatron.pipeline_parallel_size": 1,
    "megatron.layer_spec": None,
    "megatron.padded_vocab_in_normaliser": False,
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
BACKENDS: Mapping[str, str] = {
    "production": "xcfg_kernels.production:Production",
    "deterministic": "xcfg_kernels.deterministic:Deterministic",
    "megatron": "xcfg_megatron.cross_entropy:CrossEntropy",
}


def megatron_play(
    checkpoint: Path,
    knobs: Mapping[str, Json] = {},
    *,
    backend: str = "production",
    options: Mapping[str, Json] = {},
    times: int = 1,
) -> Play:
    """The scorer's baseline with ``knobs`` changed."""
    return Play(
        scorer="xcfg_megatron.scorer:MegatronScorer",
        materializer="xcfg_megatron.materialize:MegatronMaterializer",
        knobs={**TRAINING, "logp.backend": backend, **knobs},
        backend=BACKENDS[backend],
        checkpoint=str(checkpoint),
        options=options,
        times=times,
    )

"""The scorers of this plugin with chosen knobs, to be played in this process or on launched ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xcfg.model.json import Json
from xcfg_torch.testing.play import Play

_COMMON: Mapping[str, Json] = {
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
    "fsdp.cpu_offload": None,
    "fsdp.activation_checkpointing": False,
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
TRAINING: Mapping[str, Json] = {**_COMMON, "fsdp.reshard_after_forward": None, "fsdp.context_layout": None}
FLAT: Mapping[str, Json] = {**_COMMON, "fsdp.strategy": None, "fsdp.buffer_dtype": None}


def fsdp_play(
    checkpoint: Path, knobs: Mapping[str, Json] = {}, *, times: int = 1, options: Mapping[str, Json] = {}
) -> Play:
    """The baseline of the scorer ``fsdp`` with ``knobs`` changed."""
    return _play(
        "xcfg_fsdp.scorer:FsdpScorer",
        "xcfg_fsdp.materialize:FsdpMaterializer",
        checkpoint,
        {**TRAINING, **knobs},
        times=times,
        options=options,
    )


def fsdp1_play(checkpoint: Path, knobs: Mapping[str, Json] = {}, *, times: int = 1) -> Play:
    """The baseline of the scorer ``fsdp1`` with ``knobs`` changed."""
    return _play(
        "xcfg_fsdp.flat.scorer:Fsdp1Scorer",
        "xcfg_fsdp.flat.materialize:Fsdp1Materializer",
        checkpoint,
        {**FLAT, **knobs},
        times=times,
    )


def _play(
    scorer: str,
    materializer: str,
    checkpoint: Path,
    knobs: Mapping[str, Json],
    *,
    times: int,
    options: Mapping[str, Json] = {},
) -> Play:
    backend = str(knobs["logp.backend"])
    return Play(
        scorer=scorer,
        materializer=materializer,
        knobs=knobs,
        backend=f"xcfg_kernels.{backend}:{backend.capitalize()}",
        checkpoint=str(checkpoint),
        options=options,
        times=times,
    )

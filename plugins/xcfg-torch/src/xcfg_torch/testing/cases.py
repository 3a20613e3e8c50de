"""The scorer ``torch`` played in this process with chosen knobs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xcfg.model.json import Json
from xcfg.model.sample import TokenBatch
from xcfg_torch.testing.play import Play, Played, play

TRAINING: Mapping[str, Json] = {
    "training.compute_dtype": "float32",
    "training.attention_backend": "sdpa",
    "training.output_dtype": None,
    "training.sharding": "unsharded",
    "training.world_size": 1,
    "training.compile": False,
    "training.tensor_parallel_size": 1,
    "training.context_parallel_size": 1,
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
    "torch.head_dtype": None,
    "torch.norm_kernel": None,
    "torch.sdpa_kernel": None,
    "torch.forward": "whole",
    "torch.prefill_chunk": None,
}
OWN_CHOICE: Mapping[str, Json] = {
    "torch.norm_kernel": "unfused",
    "torch.sdpa_kernel": "flash",
}
"""What is observed on the tiny model on a CPU where nothing is asked for."""
ROLLOUT: Mapping[str, Json] = {
    "rollout.dtype": "float32",
    "rollout.attention_backend": None,
    "rollout.tensor_parallel_size": 1,
    "rollout.enforce_eager": None,
    "rollout.scoring_path": "prefill",
    "rollout.kv_cache_dtype": None,
    "rollout.quantization": None,
    "rollout.chunked_prefill": None,
    "execution.prefix_cache": False,
    "sampling.logprobs_mode": "raw_logprobs",
    "sampling.temperature": 1.0,
    "sampling.top_p": 1.0,
    "sampling.top_k": 0,
    "batch.size": 3,
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
    "torch.rollout_prefill_chunk": None,
}


def torch_play(
    checkpoint: Path,
    knobs: Mapping[str, Json] = {},
    *,
    role: str = "training",
    backend: str = "production",
    times: int = 1,
) -> Play:
    """The scorer's baseline with ``knobs`` changed."""
    return Play(
        scorer="xcfg_torch.scorer:TorchScorer",
        materializer="xcfg_torch.materialize:TorchMaterializer",
        knobs={**(TRAINING if role == "training" else ROLLOUT), "logp.backend": backend, **knobs},
        backend=f"xcfg_kernels.{backend}:{backend.capitalize()}",
        checkpoint=str(checkpoint),
        role=role,
        times=times,
    )


def played(
    checkpoint: Path,
    batch: TokenBatch,
    knobs: Mapping[str, Json] = {},
    *,
    role: str = "training",
    backend: str = "production",
    times: int = 1,
) -> Played:
    """Play it in this process."""
    return play(torch_play(checkpoint, knobs, role=role, backend=backend, times=times), batch)


def tp_play(
    checkpoint: Path, knobs: Mapping[str, Json] = {}, *, ranks: int, backend: str = "production", times: int = 1
) -> Play:
    """The baseline of the scorer ``torch-tp`` on ``ranks`` ranks with ``knobs`` changed."""
    base = {name: value for name, value in TRAINING.items() if name != "training.world_size"}
    own: Mapping[str, Json] = {
        "training.tensor_parallel_size": ranks,
        "training.reduce_dtype": None,
        "execution.collective": None,
    }
    return Play(
        scorer="xcfg_torch.tp_scorer:TensorParallelScorer",
        materializer="xcfg_torch.tp_materialize:TensorParallelMaterializer",
        knobs={**base, **own, "logp.backend": backend, **knobs},
        backend=f"xcfg_kernels.{backend}:{backend.capitalize()}",
        checkpoint=str(checkpoint),
        times=times,
    )

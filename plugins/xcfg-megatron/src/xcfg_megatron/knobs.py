"""The plugin's own knobs and the materializers of the scorer ``megatron``, as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.scorer import MaterializerDescriptor
from xcfg_torch.shared import SHARED_ONLY, Only, only_rows, row

SCORER = "megatron"
TARGET = "xcfg_megatron.materialize:MegatronMaterializer"

PIPELINE = Knob(
    name="megatron.pipeline_parallel_size",
    summary="Stages over which Megatron's layers are spread, one after the other",
    source_class=SourceClass.REDUCTION,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.TRAINING,
    domain=Domain(kind=Kind.INT, minimum=1),
    default=1,
    semantic_scope=2,
    intrusion=1,
    aligned={"megatron.pipeline_parallel_size": 1},
)
LAYER_SPEC = Knob(
    name="megatron.layer_spec",
    summary="Modules of Megatron's layers; null is Transformer Engine's on CUDA where it is there, else the local ones",
    source_class=SourceClass.ARITHMETIC,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.TRAINING,
    domain=Domain(kind=Kind.STR, values=("local", "transformer_engine"), optional=True),
    semantic_scope=1,
    intrusion=1,
    maintenance=1,
    aligned={"megatron.layer_spec": "local"},
)
PADDED_VOCABULARY = Knob(
    name="megatron.padded_vocab_in_normaliser",
    summary="Whether rows of padding of the output head take part in the normaliser of a logprob",
    source_class=SourceClass.LOGICAL,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.TRAINING,
    domain=Domain(kind=Kind.BOOL),
    default=False,
    semantic_scope=2,
    aligned={"megatron.padded_vocab_in_normaliser": False},
)
KNOBS = (PIPELINE, LAYER_SPEC, PADDED_VOCABULARY)

ONLY: Mapping[str, Only] = {
    "training.attention_backend": Only(
        values=(None, "sdpa"),
        reason="Megatron's own attention class asks for memory of a CUDA device, and Transformer Engine's layers "
        "choose for themselves",
    ),
    "training.compile": Only(values=(False,), reason="this scorer runs Megatron's layers as they are"),
    "training.sharding": Only(
        values=("unsharded",),
        reason="Megatron's distributed optimizer shards what a score-only rank does not have: every rank keeps its "
        "tensor-parallel part of its stage whole",
    ),
    "training.context_parallel_size": Only(
        values=(1,),
        reason="Megatron's context parallelism is that of Transformer Engine's attention, and it cuts its rotary "
        "embedding through CUDA",
    ),
    "training.reduce_dtype": Only(
        values=(None,), reason="Megatron sums over tensor-parallel ranks in the dtype of the activations"
    ),
    "execution.collective": Only(
        values=(None, "gloo", "nccl"), reason="the ranks of this scorer meet over one of these"
    ),
    "layout.packing": SHARED_ONLY["layout.packing"],
    "logp.reduction_policy": SHARED_ONLY["logp.reduction_policy"],
}
"""Knobs whose values are limited, and why."""

_APPLIED: Mapping[str, Lifecycle] = {
    "training.compute_dtype": Lifecycle.ENGINE,
    "training.output_dtype": Lifecycle.ENGINE,
    "training.world_size": Lifecycle.ENGINE,
    "training.tensor_parallel_size": Lifecycle.ENGINE,
    "layout.vocab_padding": Lifecycle.ENGINE,
    "logp.tp_layout": Lifecycle.ENGINE,
    "torch.device": Lifecycle.ENGINE,
    "batch.size": Lifecycle.REQUEST,
    "batch.micro_size": Lifecycle.REQUEST,
    "layout.padding_side": Lifecycle.REQUEST,
    "layout.position_ids": Lifecycle.REQUEST,
    "logp.backend": Lifecycle.REQUEST,
    "logp.deterministic": Lifecycle.REQUEST,
    "execution.threads": Lifecycle.PROCESS,
    **{knob.name: knob.lifecycle for knob in KNOBS},
}

MATERIALIZERS: tuple[MaterializerDescriptor, ...] = (
    *(row(SCORER, TARGET, knob, lifecycle) for knob, lifecycle in _APPLIED.items()),
    *only_rows(SCORER, TARGET, ONLY),
)
"""Every materializer of the scorer ``megatron``."""

"""How knobs reach every torch training scorer in the same way, as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from xcfg.model.json import Json
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import MaterializerDescriptor

ATTENTION_BACKENDS: tuple[Json, ...] = (None, "sdpa", "eager")
ATTENTION = "only torch's fused attention and the model's own eager one can be seen to run"


@frozen(kw_only=True)
class Only:
    """The values of a knob that cannot be anything else on a scorer, and why."""

    values: tuple[Json, ...]
    reason: str
    lifecycle: Lifecycle = Lifecycle.ENGINE


SHARED_ONLY: Mapping[str, Only] = {
    "training.tensor_parallel_size": Only(values=(1,), reason="every rank of this scorer computes whole layers"),
    "layout.vocab_padding": Only(values=(1,), reason="the checkpoint's output head is loaded as it is"),
    "layout.packing": Only(
        values=(False,),
        reason="rows that hold several sequences need an attention mask that this scorer does not build",
        lifecycle=Lifecycle.REQUEST,
    ),
    "logp.tp_layout": Only(values=("full-vocabulary",), reason="every rank of this scorer has whole rows of logits"),
    "logp.reduction_policy": Only(
        values=("native",),
        reason="the shipped logprob kernels sum as their own primitives do",
        lifecycle=Lifecycle.REQUEST,
    ),
}
"""Knobs that a torch training scorer has and cannot change."""


def row(
    scorer: str, target: str, knob: str, lifecycle: Lifecycle, values: tuple[Json, ...] = (), reason: str = ""
) -> MaterializerDescriptor:
    """One knob of one scorer; without ``values`` its whole domain."""
    return MaterializerDescriptor(
        knob=knob, scorer=scorer, lifecycle=lifecycle, target=target, values=values, reason=reason
    )


def only_rows(scorer: str, target: str, only: Mapping[str, Only]) -> tuple[MaterializerDescriptor, ...]:
    """One row for each knob that cannot be anything else."""
    return tuple(row(scorer, target, knob, item.lifecycle, item.values, item.reason) for knob, item in only.items())


def shared_materializers(
    scorer: str, target: str, only: Mapping[str, Only] = SHARED_ONLY
) -> tuple[MaterializerDescriptor, ...]:
    """Materializers of the knobs that every torch training scorer applies in the same way, and of those in ``only``."""
    return (
        row(scorer, target, "training.compute_dtype", Lifecycle.ENGINE),
        row(scorer, target, "training.attention_backend", Lifecycle.ENGINE, ATTENTION_BACKENDS, ATTENTION),
        row(scorer, target, "training.output_dtype", Lifecycle.ENGINE),
        row(scorer, target, "training.compile", Lifecycle.ENGINE),
        row(scorer, target, "batch.size", Lifecycle.REQUEST),
        row(scorer, target, "batch.micro_size", Lifecycle.REQUEST),
        row(scorer, target, "layout.padding_side", Lifecycle.REQUEST),
        row(scorer, target, "layout.position_ids", Lifecycle.REQUEST),
        row(scorer, target, "execution.threads", Lifecycle.PROCESS),
        row(scorer, target, "logp.backend", Lifecycle.REQUEST),
        row(scorer, target, "logp.deterministic", Lifecycle.REQUEST),
        row(scorer, target, "torch.device", Lifecycle.ENGINE),
        *only_rows(scorer, target, only),
    )


PACKED_BY_OWN_MASK: Mapping[str, Only] = {name: item for name, item in SHARED_ONLY.items() if name != "layout.packing"}
"""As :data:`SHARED_ONLY` for scorers that build the mask of packed rows."""


def own_materializers(scorer: str, target: str) -> tuple[MaterializerDescriptor, ...]:
    """Materializers of the knobs of scorers whose model this plugin loads and passes by itself."""
    return (
        row(scorer, target, "layout.packing", Lifecycle.REQUEST),
        row(scorer, target, "torch.head_dtype", Lifecycle.ENGINE),
        row(scorer, target, "torch.norm_kernel", Lifecycle.ENGINE),
        row(scorer, target, "torch.sdpa_kernel", Lifecycle.REQUEST),
        row(scorer, target, "torch.forward", Lifecycle.REQUEST),
        row(scorer, target, "torch.prefill_chunk", Lifecycle.REQUEST),
    )

"""The plugin's own knob and its materializers, as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.scorer import MaterializerDescriptor

SCORER = "torch"
TARGET = "xcfg_torch.materialize:TorchMaterializer"

DEVICE = Knob(
    name="torch.device",
    summary="Device kind of the torch scorers; null is CUDA where there is one, else the CPU",
    source_class=SourceClass.ARITHMETIC,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.BOTH,
    domain=Domain(kind=Kind.STR, values=("cpu", "cuda"), optional=True),
    semantic_scope=1,
    intrusion=1,
)

ATTENTION_BACKENDS: tuple[Json, ...] = (None, "sdpa", "eager")

_ONE_PROCESS = "the torch scorer is a single process"
_NO_CACHE = "the torch scorer passes whole sequences and keeps no keys and values"
_RAW = "the torch scorer hands the model's own logits to the logprob kernel"
_ATTENTION = "only torch's fused attention and the model's own eager one can be seen to run"

FIXED: Mapping[str, tuple[Json, ...]] = {
    "training.sharding": ("unsharded",),
    "training.world_size": (1,),
    "rollout.tensor_parallel_size": (1,),
    "rollout.enforce_eager": (None, True),
    "rollout.scoring_path": ("prefill",),
    "rollout.kv_cache_dtype": (None,),
    "execution.prefix_cache": (None, False),
    "sampling.logprobs_mode": ("raw_logprobs",),
    "sampling.temperature": (1.0,),
}
"""Values of knobs that the scorer ``torch`` has and cannot change."""

_REASONS: Mapping[str, str] = {
    "training.sharding": _ONE_PROCESS,
    "training.world_size": _ONE_PROCESS,
    "rollout.tensor_parallel_size": _ONE_PROCESS,
    "rollout.enforce_eager": "the torch scorer compiles nothing",
    "rollout.scoring_path": _NO_CACHE,
    "rollout.kv_cache_dtype": _NO_CACHE,
    "execution.prefix_cache": _NO_CACHE,
    "sampling.logprobs_mode": _RAW,
    "sampling.temperature": _RAW,
}


def shared_materializers(scorer: str, target: str) -> tuple[MaterializerDescriptor, ...]:
    """Materializers of the knobs that every torch training scorer applies in the same way."""

    def row(knob: str, lifecycle: Lifecycle, values: tuple[Json, ...] = (), reason: str = "") -> MaterializerDescriptor:
        return MaterializerDescriptor(
            knob=knob, scorer=scorer, lifecycle=lifecycle, target=target, values=values, reason=reason
        )

    return (
        row("training.compute_dtype", Lifecycle.ENGINE),
        row("training.attention_backend", Lifecycle.ENGINE, ATTENTION_BACKENDS, _ATTENTION),
        row("training.output_dtype", Lifecycle.ENGINE),
        row("batch.size", Lifecycle.REQUEST),
        row("batch.micro_size", Lifecycle.REQUEST),
        row("layout.padding_side", Lifecycle.REQUEST),
        row("execution.threads", Lifecycle.PROCESS),
        row("logp.backend", Lifecycle.REQUEST),
        row("torch.device", Lifecycle.ENGINE),
    )


def _own(knob: str, **kwargs: Json) -> MaterializerDescriptor:
    return MaterializerDescriptor(knob=knob, scorer=SCORER, target=TARGET, **{"lifecycle": Lifecycle.ENGINE, **kwargs})


MATERIALIZERS = (
    *shared_materializers(SCORER, TARGET),
    *(
        _own(
            knob,
            values=values,
            reason=_REASONS[knob],
            lifecycle=Lifecycle.REQUEST
            if knob in ("rollout.scoring_path", "sampling.temperature")
            else Lifecycle.ENGINE,
        )
        for knob, values in FIXED.items()
    ),
    _own("rollout.dtype"),
    _own("rollout.attention_backend", values=ATTENTION_BACKENDS, reason=_ATTENTION),
    _own("training.reduce_dtype", inapplicable="a single process reduces nothing over ranks"),
)
"""Every materializer of the scorer ``torch``."""

"""The plugin's own knobs and the materializers of the scorer ``vllm``, as plain data."""

from __future__ import annotations

from xcfg.model.json import Json
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.scorer import MaterializerDescriptor

SCORER = "vllm"
TARGET = "xcfg_vllm.materialize:VllmMaterializer"


def _own(name: str, summary: str, source_class: SourceClass, domain: Domain, default: Json = None) -> Knob:
    return Knob(
        name=f"vllm.{name}",
        summary=summary,
        source_class=source_class,
        lifecycle=Lifecycle.ENGINE,
        targets=Target.ROLLOUT,
        domain=domain,
        default=default,
        semantic_scope=1,
        intrusion=1,
    )


def _count() -> Domain:
    return Domain(kind=Kind.INT, minimum=1, optional=True)


KNOBS = (
    _own(
        "seed",
        "Seed of the engine's random state; sampled requests carry seeds of their own",
        SourceClass.EXECUTION,
        Domain(kind=Kind.INT, minimum=0, maximum=2**32 - 1),
        0,
    ),
    _own("block_size", "Tokens a KV cache block; null is vLLM's choice", SourceClass.REDUCTION, _count()),
    _own("kv_cache_blocks", "Blocks of the KV cache; null is estimated", SourceClass.EXECUTION, _count()),
    _own("max_model_len", "Most tokens a sequence; null is the model's limit", SourceClass.EXECUTION, _count()),
    _own("max_num_seqs", "Most sequences in one step; null is vLLM's choice", SourceClass.EXECUTION, _count()),
    _own(
        "max_num_batched_tokens",
        "Most tokens in one step, beyond which prompts are prefilled in chunks; null is vLLM's choice",
        SourceClass.REDUCTION,
        _count(),
    ),
)
"""Every knob this plugin owns."""

KV_CACHE_DTYPES: tuple[Json, ...] = (None, "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")


def _row(
    knob: str,
    lifecycle: Lifecycle = Lifecycle.ENGINE,
    *,
    values: tuple[Json, ...] = (),
    reason: str = "",
) -> MaterializerDescriptor:
    return MaterializerDescriptor(
        knob=knob, scorer=SCORER, lifecycle=lifecycle, target=TARGET, values=values, reason=reason
    )


def _inapplicable(knob: str, sentence: str) -> MaterializerDescriptor:
    return MaterializerDescriptor(knob=knob, scorer=SCORER, lifecycle=Lifecycle.REQUEST, inapplicable=sentence)


MATERIALIZERS = (
    _row("rollout.tensor_parallel_size"),
    _row("rollout.dtype"),
    _row(
        "rollout.kv_cache_dtype",
        values=KV_CACHE_DTYPES,
        reason="vLLM stores keys and values in the compute dtype, or in one of these",
    ),
    _row("rollout.attention_backend"),
    _row("rollout.enforce_eager"),
    _row("rollout.scoring_path", Lifecycle.REQUEST),
    _row("execution.prefix_cache"),
    _row("execution.threads", Lifecycle.PROCESS),
    _row("sampling.logprobs_mode"),
    _row("sampling.temperature", Lifecycle.REQUEST),
    _row("batch.size", Lifecycle.REQUEST),
    *(_row(knob.name) for knob in KNOBS),
    _inapplicable("layout.padding_side", "vLLM runs ragged batches: nothing is padded"),
    _inapplicable("logp.backend", "vLLM computes logprobs in its own sampler and lets no other kernel take over"),
)
"""Every materializer of the scorer ``vllm``."""

"""The plugin's own knobs, as plain data."""

from __future__ import annotations

from xcfg.model.json import Json
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target


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
    _own(
        "max_num_batched_tokens",
        "Most tokens in one step, beyond which prompts are prefilled in chunks; null is vLLM's choice",
        SourceClass.REDUCTION,
        _count(),
    ),
)
"""Every knob this plugin owns."""

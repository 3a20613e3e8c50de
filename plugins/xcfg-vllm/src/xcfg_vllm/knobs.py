"""The plugin's own knobs, as plain data."""

from __future__ import annotations

from xcfg.model.json import Json
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg_vllm.settings import OFFLINE, SERVER


def _own(
    name: str,
    summary: str,
    source_class: SourceClass,
    domain: Domain,
    default: Json = None,
    lifecycle: Lifecycle = Lifecycle.ENGINE,
) -> Knob:
    return Knob(
        name=f"vllm.{name}",
        summary=summary,
        source_class=source_class,
        lifecycle=lifecycle,
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
    _own(
        "executor_backend",
        "What runs the workers: processes of their own (mp), or for one worker the scorer's process (uni)",
        SourceClass.EXECUTION,
        Domain(kind=Kind.STR, values=("mp", "uni")),
        "mp",
    ),
    _own(
        "frontend",
        "What requests go through: the engine in the scorer's process (offline), or a vllm serve process (server)",
        SourceClass.EXECUTION,
        Domain(kind=Kind.STR, values=(OFFLINE, SERVER)),
        OFFLINE,
    ),
    _own(
        "lora",
        "Folder of a LoRA adapter that every request goes through; null is none",
        SourceClass.LOGICAL,
        Domain(kind=Kind.STR, optional=True),
    ),
    _own(
        "min_p",
        "Least probability of a token, as a share of the likeliest one's; counts in processed mode only",
        SourceClass.LOGICAL,
        Domain(kind=Kind.FLOAT, minimum=0.0, maximum=1.0),
        0.0,
        Lifecycle.REQUEST,
    ),
    _own(
        "prefix_cache_state",
        "Whether prompts are in the prefix cache before a pass (warm) or not (cold); null is warm where there is one",
        SourceClass.EXECUTION,
        Domain(kind=Kind.STR, values=("warm", "cold"), optional=True),
        None,
        Lifecycle.REQUEST,
    ),
)
"""Every knob this plugin owns."""

"""The semantic knobs that every engine shares, under the prefixes core owns.

Source classes follow the taxonomy of the measurement contract:

- ``arithmetic``: how one operation is computed (compute dtype, attention kernel, graph compilation, logprob kernel);
- ``reduction``: in which order and over which shards sums are taken (parallel degrees, sharding, batch shape);
- ``representation``: what a tensor is stored in between operations (KV cache, logits);
- ``execution``: by which route a result is reached (decode or prefill, caches, threads);
- ``logical``: what is computed at all (logprob semantics, padding layout).

Defaults are those that every scorer can apply or, with None, those that the engine chooses itself and that are only
observed. The prefix cache is off unless asked for: a warm cache makes a side run depend on the one before it.
"""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.builtin.domains import choice, compute_dtype, count, name, storage_dtype, switch
from xcfg.model.json import Json
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target

_ROLLOUT_ENGINE = (Target.ROLLOUT, Lifecycle.ENGINE)
_ROLLOUT_REQUEST = (Target.ROLLOUT, Lifecycle.REQUEST)
_TRAINING_ENGINE = (Target.TRAINING, Lifecycle.ENGINE)
_TRAINING_REQUEST = (Target.TRAINING, Lifecycle.REQUEST)
_BOTH_REQUEST = (Target.BOTH, Lifecycle.REQUEST)


def _knob(
    name: str,
    summary: str,
    source_class: SourceClass,
    place: tuple[Target, Lifecycle],
    domain: Domain,
    default: Json,
    cost: tuple[int, int, int],
    aligned: Mapping[str, Json],
) -> Knob:
    """A knob; ``cost`` is (semantic scope, intrusion, maintenance) of aligning it, 0 cheapest."""
    return Knob(
        name=name,
        summary=summary,
        source_class=source_class,
        targets=place[0],
        lifecycle=place[1],
        domain=domain,
        default=default,
        semantic_scope=cost[0],
        intrusion=cost[1],
        maintenance=cost[2],
        aligned=aligned,
    )


_ARITHMETIC = (
    _knob(
        "rollout.dtype",
        "Compute dtype of the rollout engine's forward pass",
        SourceClass.ARITHMETIC,
        _ROLLOUT_ENGINE,
        compute_dtype(),
        "bfloat16",
        (2, 1, 0),
        {"rollout.dtype": "float32"},
    ),
    _knob(
        "training.compute_dtype",
        "Compute dtype of the training engine's forward pass",
        SourceClass.ARITHMETIC,
        _TRAINING_ENGINE,
        compute_dtype(),
        "bfloat16",
        (2, 1, 0),
        {"training.compute_dtype": "float32"},
    ),
    _knob(
        "rollout.attention_backend",
        "Attention implementation of the rollout engine",
        SourceClass.ARITHMETIC,
        _ROLLOUT_ENGINE,
        name(optional=True),
        None,
        (1, 1, 1),
        {},
    ),
    _knob(
        "training.attention_backend",
        "Attention implementation of the training engine",
        SourceClass.ARITHMETIC,
        _TRAINING_ENGINE,
        name(optional=True),
        "sdpa",
        (1, 1, 1),
        {},
    ),
    _knob(
        "rollout.enforce_eager",
        "Run the rollout engine without graph capture and compilation",
        SourceClass.ARITHMETIC,
        _ROLLOUT_ENGINE,
        switch(optional=True),
        None,
        (1, 1, 0),
        {"rollout.enforce_eager": True},
    ),
    _knob(
        "logp.backend",
        "Kernel that turns logits into selected-token logprobs, on every side that lets one take over",
        SourceClass.ARITHMETIC,
        (Target.KERNEL, Lifecycle.REQUEST),
        name(),
        "production",
        (0, 1, 1),
        {"logp.backend": "reference"},
    ),
)

_REDUCTION = (
    _knob(
        "rollout.tensor_parallel_size",
        "Ranks over which the rollout engine splits each layer",
        SourceClass.REDUCTION,
        _ROLLOUT_ENGINE,
        count(),
        1,
        (2, 1, 0),
        {"rollout.tensor_parallel_size": 1},
    ),
    _knob(
        "training.world_size",
        "Ranks of the training engine",
        SourceClass.REDUCTION,
        _TRAINING_ENGINE,
        count(),
        1,
        (2, 1, 0),
        {"training.world_size": 1},
    ),
    _knob(
        "training.sharding",
        "How the training engine shards parameters over its ranks",
        SourceClass.REDUCTION,
        _TRAINING_ENGINE,
        choice("unsharded", "full_shard", "hybrid"),
        "unsharded",
        (2, 1, 0),
        {"training.sharding": "unsharded"},
    ),
    _knob(
        "training.reduce_dtype",
        "Dtype in which the training engine reduces over ranks",
        SourceClass.REDUCTION,
        _TRAINING_ENGINE,
        compute_dtype(optional=True),
        None,
        (1, 1, 0),
        {"training.reduce_dtype": "float32"},
    ),
    _knob(
        "batch.size",
        "Sequences collated into one forward pass",
        SourceClass.REDUCTION,
        _BOTH_REQUEST,
        count(),
        8,
        (1, 0, 0),
        {"batch.size": 1},
    ),
    _knob(
        "batch.micro_size",
        "Sequences of one collated batch that pass the training engine at once; null is the whole batch",
        SourceClass.REDUCTION,
        _TRAINING_REQUEST,
        count(optional=True),
        None,
        (1, 0, 0),
        {"batch.micro_size": None},
    ),
)

_REPRESENTATION = (
    _knob(
        "rollout.kv_cache_dtype",
        "Dtype in which the rollout engine stores keys and values",
        SourceClass.REPRESENTATION,
        _ROLLOUT_ENGINE,
        storage_dtype(),
        None,
        (2, 1, 0),
        {"rollout.kv_cache_dtype": None},
    ),
    _knob(
        "training.output_dtype",
        "Dtype in which the training engine hands on its logits; null is the compute dtype",
        SourceClass.REPRESENTATION,
        _TRAINING_ENGINE,
        compute_dtype(optional=True),
        None,
        (1, 1, 0),
        {"training.output_dtype": "float32"},
    ),
)

_EXECUTION = (
    _knob(
        "rollout.scoring_path",
        "Route on which fixed tokens are scored: decoding with the next token forced, or one prefill",
        SourceClass.EXECUTION,
        _ROLLOUT_REQUEST,
        choice("forced_decode", "prefill"),
        "forced_decode",
        (1, 1, 1),
        {"rollout.scoring_path": "prefill"},
    ),
    _knob(
        "execution.prefix_cache",
        "Reuse of keys and values of prompts seen before",
        SourceClass.EXECUTION,
        _ROLLOUT_ENGINE,
        switch(optional=True),
        False,
        (1, 0, 0),
        {"execution.prefix_cache": False},
    ),
    _knob(
        "execution.threads",
        "CPU threads of each process",
        SourceClass.EXECUTION,
        (Target.BOTH, Lifecycle.PROCESS),
        count(),
        1,
        (1, 0, 0),
        {"execution.threads": 1},
    ),
)

_LOGICAL = (
    _knob(
        "sampling.logprobs_mode",
        "Whether the rollout engine reports logprobs before or after its logits processors",
        SourceClass.LOGICAL,
        _ROLLOUT_ENGINE,
        choice("raw_logprobs", "processed_logprobs"),
        "raw_logprobs",
        (0, 0, 0),
        {"sampling.logprobs_mode": "raw_logprobs"},
    ),
    _knob(
        "sampling.temperature",
        "Temperature of the scored distribution; the domain starts where 1/temperature is still harmless in float32",
        SourceClass.LOGICAL,
        _ROLLOUT_REQUEST,
        Domain(kind=Kind.FLOAT, minimum=0.01),
        1.0,
        (0, 0, 0),
        {"sampling.temperature": 1.0},
    ),
    _knob(
        "layout.padding_side",
        "Side on which rows of a collated batch are padded",
        SourceClass.LOGICAL,
        _BOTH_REQUEST,
        choice("left", "right"),
        "right",
        (0, 0, 0),
        {"layout.padding_side": "right"},
    ),
)

KNOBS = (*_ARITHMETIC, *_REDUCTION, *_REPRESENTATION, *_EXECUTION, *_LOGICAL)
"""Every knob core owns."""

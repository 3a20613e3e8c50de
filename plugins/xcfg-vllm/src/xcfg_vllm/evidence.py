"""From what the engine gave to the values that leave the scorer: samples, rank metadata, meaning of the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcfg.model.capability import Unobservable
from xcfg.model.identity import LogprobSemantics
from xcfg.model.json import Json
from xcfg.model.sample import RankInfo, Samples, TokenBatch
from xcfg_vllm.faults import EngineFault
from xcfg_vllm.live import Live
from xcfg_vllm.readback import activation_dtype
from xcfg_vllm.scoring import EngineScores


def samples_of(batch: TokenBatch, rows: Sequence[NDArray[np.float32]]) -> Samples:
    """``rows``: float32 logprobs (nats) of each sequence's response. A ragged engine counts positions from 0."""
    lengths = [len(prompt) + len(response) for prompt, response in zip(batch.prompts, batch.responses, strict=True)]
    return Samples(
        sequence=range(len(batch.ids)),
        rank=[0] * len(batch.ids),
        prompt_length=[len(prompt) for prompt in batch.prompts],
        response_length=[len(response) for response in batch.responses],
        input_ids=_flat([*prompt, *response] for prompt, response in zip(batch.prompts, batch.responses, strict=True)),
        position_ids=_flat(range(length) for length in lengths),
        action_mask=np.array(_flat(batch.action_masks), dtype=np.bool_),
        logprobs=np.concatenate([np.zeros(0, dtype=np.float32), *rows]),
    )


def rank_info(live: Live) -> RankInfo:
    """Metadata of the one rank the host sees; the workers behind it are its facts."""
    scored = _scored(live)
    dtype = activation_dtype(live.workers, scored)
    if isinstance(dtype, Unobservable):
        raise EngineFault(f"the compute dtype is unknown: {dtype.reason}")
    return RankInfo(
        rank=0,
        world_size=1,
        compute_dtype=str(dtype),
        parallel={"tp": len(live.workers)},
        cache_mode="paged, prefix cache" if scored.cache["enabled"] else "paged",
        facts={
            "forcing": live.engine.forcing,
            "executor": live.engine.executor,
            "runner": sorted({hooks["runner"] for hooks in live.engine.hooks}),
            "cache": scored.cache,
            "cached_tokens": sum(scored.cached_tokens),
            "state": [{name: held[name] for name in ("covers", "uncovered")} for held in live.digests],
            "workers": [_worker_facts(facts, meter) for facts, meter in zip(live.workers, scored.meters, strict=True)],
        },
    )


def semantics_of(live: Live) -> LogprobSemantics:
    """What the numbers mean, from the sampler of every worker. Raw logprobs are taken before temperature and cuts."""
    scored = _scored(live)
    modes = {facts["logprobs_mode"] for facts in live.workers}
    mode = str(_one("logprobs mode", modes)).removesuffix("_logprobs")
    logits = _one("scale and soft cap", {tuple(facts["logits"].values()) for facts in live.workers})
    own: dict[str, Any] = {
        "logit_scale": logits[0],
        "logit_softcap": logits[1],
        "vocab_size": _one("width of the logits", {width for meter in scored.meters for width in meter["columns"]}),
    }
    if mode == "processed":
        for name in ("temperature", "top_k", "top_p", "min_p"):
            own[name] = _one(name, {value for meter in scored.meters for value in meter["sampling"][name]})
    return LogprobSemantics(mode=mode, **own)


def _worker_facts(facts: Any, meter: Any) -> dict[str, Json]:
    """A worker's facts without a line for each layer."""
    attention, weights = facts["attention"].values(), facts["weights"]
    return {
        "attention": sorted({f"{layer['backend']}/{layer['implementation']}" for layer in attention}),
        "kv_cache": sorted({dtype for layer in attention for dtype in layer["kv_storage_dtypes"]}),
        "parameter_dtypes": weights["parameter_dtypes"],
        "emptied_dtypes": weights["emptied_dtypes"],
        "quant_methods": sorted(set(weights["quant_methods"].values())),
        "int8_sums": facts["int8_sums"],
        "adapters": facts["adapters"],
        "compile": facts["compile"],
        "parallel": {name: value for name, value in facts["parallel"].items() if name != "pid"},
        "meter": meter,
    }


def _scored(live: Live) -> EngineScores:
    if live.scored is None:
        raise EngineFault("nothing was scored yet")
    return live.scored


def _one(what: str, values: set[Any]) -> Any:
    if len(values) != 1:
        raise EngineFault(f"the workers do not agree on one {what}: {sorted(values)}")
    return next(iter(values))


def _flat(rows: Any) -> list[Any]:
    return [item for row in rows for item in row]

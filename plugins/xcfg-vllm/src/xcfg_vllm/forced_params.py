"""Which forcing this build of vLLM will use, and how a request asks for it."""

from __future__ import annotations

from typing import Any

V1_HOOK = "sampler_hook"
V2_TRACE = "trace_replay"


def forcing_mechanism() -> str:
    """``trace_replay`` where vLLM will pick Model Runner V2, which has it built in; else our ``sampler_hook``."""
    from vllm import envs
    from vllm.engine.arg_utils import EngineArgs
    from vllm.triton_utils import HAS_TRITON

    has_trace = "enable_trace_replay" in EngineArgs.__dataclass_fields__
    chosen = getattr(envs, "VLLM_USE_V2_MODEL_RUNNER", False)
    runs_v2 = HAS_TRITON if chosen is None else bool(chosen)
    return V2_TRACE if has_trace and runs_v2 else V1_HOOK


def forcing_arguments(mechanism: str) -> dict[str, Any]:
    """What ``vllm.LLM`` needs so that requests may force their tokens."""
    if mechanism == V2_TRACE:
        return {"enable_trace_replay": True}
    return {"logits_processors": ["xcfg_vllm.forcing:ForcedRows"]}


def forcing_request(mechanism: str, ids: list[int]) -> dict[str, Any]:
    """What ``SamplingParams`` needs so that this request emits exactly ``ids``."""
    from xcfg_vllm.forcing import FORCED_IDS

    if mechanism == V2_TRACE:
        return {"trace_decode_token_ids": list(ids)}
    return {"extra_args": {FORCED_IDS: list(ids)}}

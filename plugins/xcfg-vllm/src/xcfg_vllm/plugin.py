"""Hook implementations of xcfg-vllm: descriptors and vetoes only; imports no engine."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from xcfg.model.case import Case, Rejection, SideConfig
from xcfg.model.json import Json
from xcfg.model.kernel import SELECTED_LOGPROB
from xcfg.model.knob import Knob
from xcfg.model.scorer import Launch, MaterializerDescriptor, Role, ScorerDescriptor
from xcfg.plugin import hookimpl
from xcfg_vllm.adapter_identity import VARIABLE, adapter_digest
from xcfg_vllm.capabilities import contradiction, path_reason
from xcfg_vllm.environment import FIXED, SAMPLE_BATCH
from xcfg_vllm.knobs import KNOBS
from xcfg_vllm.materializers import MATERIALIZERS, SCORER
from xcfg_vllm.sampling_values import KNOB_OF_VALUE, Sampling


@hookimpl
def xcfg_knobs() -> Sequence[Knob]:
    """Knobs that only vLLM has."""
    return KNOBS


@hookimpl
def xcfg_scorers() -> Sequence[ScorerDescriptor]:
    """The scorer ``vllm``."""
    return (
        ScorerDescriptor(
            id=SCORER,
            summary="vLLM, offline or served: samples and scores fixed tokens by forced decoding or prefill",
            target="xcfg_vllm.scorer:VllmScorer",
            roles=(Role.ROLLOUT,),
            launch=Launch.SINGLE,
            requires=("vllm",),
            install='pip install "xcfg-vllm[cpu]"  # with a GPU: "xcfg-vllm[cuda]"',
            samples=True,
            forces=True,
            operators=(SELECTED_LOGPROB,),
        ),
    )


@hookimpl
def xcfg_materializers() -> Sequence[MaterializerDescriptor]:
    """How knobs reach the scorer ``vllm``."""
    return MATERIALIZERS


@hookimpl
def xcfg_reject_case(case: Case, baseline: Case) -> Rejection | None:
    """Combinations on which vLLM cannot measure what was asked for."""
    if case.rollout.scorer != SCORER:
        return None
    knobs = case.rollout.knobs
    reason = path_reason(
        path=str(knobs.get("rollout.scoring_path")),
        logprobs_mode=str(knobs.get("sampling.logprobs_mode")),
        sampling=Sampling(
            **{name: knobs[knob] for name, knob in KNOB_OF_VALUE.items() if knob in knobs},
        ),
        prefix_cache=knobs.get("execution.prefix_cache") is True,
    )
    reason = reason or contradiction(knobs)
    return Rejection(kind="veto", reason=reason) if reason else None


@hookimpl
def xcfg_process_environment(side: SideConfig) -> Mapping[str, str]:
    """The engine core inside the scorer's process, no network; sampling in the side's batches; the adapter's digest."""
    if side.scorer != SCORER:
        return {}
    size, lora = side.knobs.get("batch.size"), side.knobs.get("vllm.lora")
    sampling = {} if size is None else {SAMPLE_BATCH: str(size)}
    adapter = {} if lora is None else {VARIABLE: adapter_digest(Path(str(lora)))}
    return {**FIXED, **sampling, **adapter}


@hookimpl
def xcfg_environment_facts(role: str) -> Mapping[str, Json]:
    """Versions, in a process that has imported vLLM anyway."""
    vllm, torch = sys.modules.get("vllm"), sys.modules.get("torch")
    if vllm is None or torch is None:
        return {}
    return {"vllm": vllm.__version__, "torch": torch.__version__, "torch_cuda": torch.version.cuda}

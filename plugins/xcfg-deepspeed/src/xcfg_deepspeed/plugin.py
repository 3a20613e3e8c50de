"""Hook implementations of xcfg-deepspeed: descriptors and vetoes only; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xcfg.model.case import Case, Rejection, SideConfig
from xcfg.model.knob import Knob
from xcfg.model.scorer import Launch, MaterializerDescriptor, Role, ScorerDescriptor
from xcfg.plugin import hookimpl
from xcfg_deepspeed.knobs import INIT_INFERENCE, MATERIALIZERS, SCORER, ZERO_STAGE
from xcfg_deepspeed.shapes import UNSHARDED, Shape
from xcfg_torch.plugin import ENVIRONMENT


@hookimpl
def xcfg_knobs() -> Sequence[Knob]:
    """``deepspeed.zero_stage`` and ``deepspeed.init_inference``."""
    return (ZERO_STAGE, INIT_INFERENCE)


@hookimpl
def xcfg_scorers() -> Sequence[ScorerDescriptor]:
    """The scorer ``deepspeed``."""
    return (
        ScorerDescriptor(
            id=SCORER,
            summary="Teacher forcing through DeepSpeed (ZeRO 0 to 3, init_inference), score-only, on one or more ranks",
            target="xcfg_deepspeed.scorer:DeepspeedScorer",
            roles=(Role.TRAINING,),
            launch=Launch.ELASTIC,
            requires=("torch", "transformers", "deepspeed"),
            install='pip install "xcfg-deepspeed[engine]"',
            world_size_knob="training.world_size",
        ),
    )


@hookimpl
def xcfg_materializers() -> Sequence[MaterializerDescriptor]:
    """How knobs reach the scorer ``deepspeed``."""
    return MATERIALIZERS


@hookimpl
def xcfg_reject_case(case: Case, baseline: Case) -> Rejection | None:
    """Combinations that DeepSpeed has no meaning for, each with its reason."""
    side = case.training
    if side.scorer != SCORER:
        return None
    reason = _shape(side).fault() or _compile_fault(side)
    return Rejection(kind="veto", reason=reason) if reason else None


@hookimpl
def xcfg_process_environment(side: SideConfig) -> Mapping[str, str]:
    """No network and no tokenizer threads in the ranks, and DeepSpeed on the device that was asked for.

    Left to itself DeepSpeed takes CUDA where there is one, as ``torch.device: null`` does.
    """
    if side.scorer != SCORER:
        return {}
    device = side.knobs.get("torch.device")
    return {**ENVIRONMENT, **({"DS_ACCELERATOR": str(device)} if device else {})}


def _shape(side: SideConfig) -> Shape:
    knobs: Mapping[str, Any] = side.knobs
    return Shape(
        world_size=knobs.get("training.world_size") or 1,
        sharding=knobs.get("training.sharding") or UNSHARDED,
        stage=knobs.get("deepspeed.zero_stage"),
        inference=bool(knobs.get("deepspeed.init_inference")),
        tensor_parallel=knobs.get("training.tensor_parallel_size") or 1,
        collective=knobs.get("execution.collective"),
    )


def _compile_fault(side: SideConfig) -> str:
    shape = _shape(side)
    if side.knobs.get("training.compile") and (shape.zero_stage == 3 or shape.inference):
        return (
            "training.compile: ZeRO-3 gathers parameters, and init_inference sums, inside the layers, where a compiled "
            "graph leaves no hook to see them run"
        )
    return ""

"""Hook implementations of xcfg-megatron: descriptors and vetoes only; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xcfg.model.case import Case, Rejection, SideConfig
from xcfg.model.knob import Knob
from xcfg.model.scorer import KernelBackendDescriptor, Launch, MaterializerDescriptor, Role, ScorerDescriptor
from xcfg.plugin import hookimpl
from xcfg_megatron.descriptors import CROSS_ENTROPY
from xcfg_megatron.knobs import KNOBS, MATERIALIZERS, SCORER
from xcfg_megatron.vetoes import fault
from xcfg_torch.plugin import ENVIRONMENT


@hookimpl
def xcfg_knobs() -> Sequence[Knob]:
    """The knobs that only Megatron has."""
    return KNOBS


@hookimpl
def xcfg_scorers() -> Sequence[ScorerDescriptor]:
    """The scorer ``megatron``."""
    return (
        ScorerDescriptor(
            id=SCORER,
            summary="Teacher forcing through Megatron-Core's GPTModel, score-only, on one or more ranks",
            target="xcfg_megatron.scorer:MegatronScorer",
            roles=(Role.TRAINING,),
            launch=Launch.ELASTIC,
            requires=("torch", "transformers", "megatron"),
            install='pip install "xcfg-megatron[engine]"',
            world_size_knob="training.world_size",
        ),
    )


@hookimpl
def xcfg_materializers() -> Sequence[MaterializerDescriptor]:
    """How knobs reach the scorer ``megatron``."""
    return MATERIALIZERS


@hookimpl
def xcfg_kernel_backends() -> Sequence[KernelBackendDescriptor]:
    """The backend ``megatron`` of the operator ``selected_logprob``."""
    return (CROSS_ENTROPY,)


@hookimpl
def xcfg_reject_case(case: Case, baseline: Case) -> Rejection | None:
    """Combinations that Megatron has no meaning for."""
    if case.training.scorer != SCORER:
        return None
    reason = fault(case.training.knobs)
    return Rejection(kind="veto", reason=reason) if reason else None


@hookimpl
def xcfg_process_environment(side: SideConfig) -> Mapping[str, str]:
    """No network and no tokenizer threads in the ranks."""
    return ENVIRONMENT if side.scorer == SCORER else {}

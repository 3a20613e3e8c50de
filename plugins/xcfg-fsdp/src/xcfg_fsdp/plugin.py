"""Hook implementations of xcfg-fsdp: descriptors and vetoes only; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xcfg.model.case import Case, Rejection, SideConfig
from xcfg.model.knob import Knob
from xcfg.model.scorer import Launch, MaterializerDescriptor, Role, ScorerDescriptor
from xcfg.plugin import hookimpl
from xcfg_fsdp.knobs import KNOBS
from xcfg_fsdp.materializers import FLAT, FLAT_MATERIALIZERS, MATERIALIZERS, SCORER
from xcfg_fsdp.vetoes import fsdp1_fault, fsdp_fault
from xcfg_torch.plugin import ENVIRONMENT

_FAULTS = {SCORER: fsdp_fault, FLAT: fsdp1_fault}


@hookimpl
def xcfg_knobs() -> Sequence[Knob]:
    """The knobs under ``fsdp.``."""
    return KNOBS


@hookimpl
def xcfg_scorers() -> Sequence[ScorerDescriptor]:
    """The scorers ``fsdp`` and ``fsdp1``."""
    return (
        _scorer(
            SCORER,
            "Teacher forcing through FSDP2, score-only, with tensor and context parallelism on any number of ranks",
            "xcfg_fsdp.scorer:FsdpScorer",
        ),
        _scorer(
            FLAT,
            "Teacher forcing through FSDP1 (FullyShardedDataParallel), score-only, on one or more ranks",
            "xcfg_fsdp.flat.scorer:Fsdp1Scorer",
        ),
    )


@hookimpl
def xcfg_materializers() -> Sequence[MaterializerDescriptor]:
    """How knobs reach the two scorers."""
    return (*MATERIALIZERS, *FLAT_MATERIALIZERS)


@hookimpl
def xcfg_reject_case(case: Case, baseline: Case) -> Rejection | None:
    """Combinations that FSDP has no meaning for, each with its reason."""
    fault = _FAULTS.get(case.training.scorer)
    reason = fault(case.training) if fault else ""
    return Rejection(kind="veto", reason=reason) if reason else None


@hookimpl
def xcfg_process_environment(side: SideConfig) -> Mapping[str, str]:
    """No network and no tokenizer threads in the ranks."""
    return ENVIRONMENT if side.scorer in _FAULTS else {}


def _scorer(name: str, summary: str, target: str) -> ScorerDescriptor:
    return ScorerDescriptor(
        id=name,
        summary=summary,
        target=target,
        roles=(Role.TRAINING,),
        launch=Launch.ELASTIC,
        requires=("torch", "transformers"),
        install='pip install "xcfg-fsdp[engine]"',
        world_size_knob="training.world_size",
    )

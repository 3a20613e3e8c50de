"""Hook implementations of xcfg-fsdp: descriptors and vetoes only; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xcfg.model.case import Case, Rejection, SideConfig
from xcfg.model.knob import Knob
from xcfg.model.scorer import Launch, MaterializerDescriptor, Role, ScorerDescriptor
from xcfg.plugin import hookimpl
from xcfg_fsdp.knobs import MASTER_DTYPE, MATERIALIZERS, SCORER
from xcfg_torch.plugin import ENVIRONMENT


@hookimpl
def xcfg_knobs() -> Sequence[Knob]:
    """``fsdp.master_dtype``."""
    return (MASTER_DTYPE,)


@hookimpl
def xcfg_scorers() -> Sequence[ScorerDescriptor]:
    """The scorer ``fsdp``."""
    return (
        ScorerDescriptor(
            id=SCORER,
            summary="Teacher forcing through FSDP2, score-only, on one or more ranks",
            target="xcfg_fsdp.scorer:FsdpScorer",
            roles=(Role.TRAINING,),
            launch=Launch.ELASTIC,
            requires=("torch", "transformers"),
            install='pip install "xcfg-fsdp[engine]"',
            world_size_knob="training.world_size",
        ),
    )


@hookimpl
def xcfg_materializers() -> Sequence[MaterializerDescriptor]:
    """How knobs reach the scorer ``fsdp``."""
    return MATERIALIZERS


@hookimpl
def xcfg_reject_case(case: Case, baseline: Case) -> Rejection | None:
    """Combinations that FSDP has no meaning for, each with its reason."""
    side = case.training
    if side.scorer != SCORER:
        return None
    reason = _fault(side)
    return Rejection(kind="veto", reason=reason) if reason else None


@hookimpl
def xcfg_process_environment(side: SideConfig) -> Mapping[str, str]:
    """No network and no tokenizer threads in the ranks."""
    return ENVIRONMENT if side.scorer == SCORER else {}


def _fault(side: SideConfig) -> str:
    return _context_fault(side) or _sharding_fault(side)


def _context_fault(side: SideConfig) -> str:
    ranks, size = side.knobs.get("training.world_size"), side.knobs.get("training.context_parallel_size")
    if isinstance(size, int) and size > 1:
        if isinstance(ranks, int) and ranks % size:
            return f"training.context_parallel_size: {size} does not divide the {ranks} ranks of training.world_size"
        if side.knobs.get("training.compile"):
            return "training.compile: a compiled layer cannot gather keys, as training.context_parallel_size asks"
    return ""


def _sharding_fault(side: SideConfig) -> str:
    sharding, world_size = side.knobs.get("training.sharding"), side.knobs.get("training.world_size")
    if sharding == "hybrid" and world_size == 1:
        return "training.sharding: hybrid replicates shards over ranks, so it needs training.world_size of at least 2"
    if sharding != "unsharded":
        return ""
    for name in ("training.reduce_dtype", "fsdp.master_dtype"):
        if side.knobs.get(name) is not None:
            return f"{name} is part of FSDP's policy, and training.sharding: unsharded wraps nothing"
    return ""

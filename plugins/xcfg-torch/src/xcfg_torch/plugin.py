"""Hook implementations of xcfg-torch: descriptors only; imports no torch."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from xcfg.model.case import Case, Rejection, SideConfig
from xcfg.model.importer import FileFormatDescriptor
from xcfg.model.json import Json
from xcfg.model.knob import Knob
from xcfg.model.scorer import Launch, MaterializerDescriptor, Role, ScorerDescriptor
from xcfg.plugin import hookimpl
from xcfg_torch.knobs import KNOBS
from xcfg_torch.materializers import MATERIALIZERS, SCORER
from xcfg_torch.tp_materializers import MATERIALIZERS as TP_MATERIALIZERS
from xcfg_torch.tp_materializers import SCORER as TP_SCORER
from xcfg_torch.vetoes import side_fault

ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""Nothing is fetched while scoring, logs hold no progress bars, and the tokenizer starts no threads of its own."""


SCORERS = (SCORER, TP_SCORER)


@hookimpl
def xcfg_knobs() -> Sequence[Knob]:
    """Those that start with ``torch.``."""
    return KNOBS


@hookimpl
def xcfg_scorers() -> Sequence[ScorerDescriptor]:
    """The scorers ``torch`` and ``torch-tp``."""
    return (
        ScorerDescriptor(
            id=SCORER,
            summary="Teacher forcing through a Hugging Face causal language model in one process",
            target="xcfg_torch.scorer:TorchScorer",
            roles=(Role.ROLLOUT, Role.TRAINING),
            launch=Launch.SINGLE,
            requires=("torch", "transformers"),
            install='pip install "xcfg-torch[engine]"',
            samples=True,
            forces=True,
        ),
        ScorerDescriptor(
            id=TP_SCORER,
            summary="Teacher forcing through a model split over ranks by Hugging Face's tensor-parallel plan",
            target="xcfg_torch.tp_scorer:TensorParallelScorer",
            roles=(Role.TRAINING,),
            launch=Launch.ELASTIC,
            requires=("torch", "transformers", "accelerate"),
            install='pip install "xcfg-torch[tp]"',
            world_size_knob="training.tensor_parallel_size",
        ),
    )


@hookimpl
def xcfg_materializers() -> Sequence[MaterializerDescriptor]:
    """How knobs reach the scorers ``torch`` and ``torch-tp``."""
    return (*MATERIALIZERS, *TP_MATERIALIZERS)


@hookimpl
def xcfg_reject_case(case: Case, baseline: Case) -> Rejection | None:
    """Combinations that the scorers of this plugin have no meaning for, each with its reason."""
    for side in (case.rollout, case.training):
        reason = side_fault(side) if side.scorer in SCORERS else ""
        if reason:
            return Rejection(kind="veto", reason=reason)
    return None


@hookimpl
def xcfg_process_environment(side: SideConfig) -> Mapping[str, str]:
    """No network and no tokenizer threads in the scorer's process."""
    return ENVIRONMENT if side.scorer in SCORERS else {}


@hookimpl
def xcfg_environment_facts(role: str) -> Mapping[str, Json]:
    """Versions and CPU capability, in a process that has imported torch anyway."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    transformers = sys.modules.get("transformers")
    return {
        "torch": torch.__version__,
        "transformers": getattr(transformers, "__version__", None),
        "torch_cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "torch_cuda": torch.version.cuda,
        "torch_threads": torch.get_num_threads(),
        "torch_interop_threads": torch.get_num_interop_threads(),
    }


@hookimpl
def xcfg_file_formats() -> Sequence[FileFormatDescriptor]:
    """Files of ``torch.save``, opened without running what a pickle could run."""
    return (
        FileFormatDescriptor(
            id="pt",
            summary="torch.save of tensors, numbers and text (weights_only)",
            suffixes=(".pt", ".pth"),
            target="xcfg_torch.recorded:read_pt",
        ),
    )

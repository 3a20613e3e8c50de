"""The backend as plain data."""

from __future__ import annotations

from xcfg.model.kernel import SELECTED_LOGPROB
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import KernelBackendDescriptor, Role

BACKEND = "te"
DTYPES = ("float32", "bfloat16")
"""What Transformer Engine takes: it refuses float16."""
DEVICES = ("cpu", "cuda")

TE = KernelBackendDescriptor(
    operator=SELECTED_LOGPROB,
    id=BACKEND,
    summary="Transformer Engine's parallel cross entropy; on a CPU its Triton kernels, interpreted",
    target="xcfg_te.backend:TransformerEngine",
    # Not in a rollout engine: the interpreter would take over the engine's own Triton kernels in the same process.
    roles=(Role.TRAINING,),
    architectures=DEVICES,
    dtypes=DTYPES,
    layouts=("full-vocabulary", "vocab-parallel"),
    required_metadata=("vocab_size",),
    collectives=("all_gather",),
    lifecycle=Lifecycle.PROCESS,
    check="xcfg_kernels.checking:check",
)

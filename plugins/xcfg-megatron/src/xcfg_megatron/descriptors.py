"""The kernel backend ``megatron`` as plain data."""

from __future__ import annotations

from xcfg.model.kernel import SELECTED_LOGPROB
from xcfg.model.scorer import KernelBackendDescriptor, Role

BACKEND = "megatron"
DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("cpu", "cuda")

CROSS_ENTROPY = KernelBackendDescriptor(
    operator=SELECTED_LOGPROB,
    id=BACKEND,
    summary="Megatron-Core's vocab_parallel_cross_entropy, over whole rows or one rank's columns",
    target="xcfg_megatron.cross_entropy:CrossEntropy",
    roles=(Role.TRAINING,),
    architectures=DEVICES,
    dtypes=DTYPES,
    layouts=("full-vocabulary", "vocab-parallel"),
    required_metadata=("vocab_size",),
    collectives=("all_reduce",),
    check="xcfg_kernels.checking:check",
)

"""The kernel backends as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json
from xcfg.model.scorer import KernelBackendDescriptor, Role

OPERATOR = "selected_logprob"
DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("cpu", "cuda")
BOTH = (Role.ROLLOUT, Role.TRAINING)
OPTIONS: Mapping[str, Json] = {"chunk_rows": 256}
"""Default options. ``chunk_rows`` bounds the fp32 copy to that many rows of the vocabulary; it changes no bit."""
DETERMINISTIC_OPTIONS: Mapping[str, Json] = {"scheme": "canonical_blocks", "block": None, "implementation": "eager"}
"""Default options of ``deterministic``. Each changes the bits; None takes the vocabulary's default block."""


CHECK = "xcfg_kernels.checking:check"
"""What measures a backend that works on torch tensors, of this distribution or of another."""


def _backend(id: str, summary: str) -> KernelBackendDescriptor:
    return KernelBackendDescriptor(
        operator=OPERATOR,
        id=id,
        summary=summary,
        target=f"xcfg_kernels.{id}:{id.capitalize()}",
        roles=BOTH,
        architectures=DEVICES,
        dtypes=DTYPES,
        options=OPTIONS,
        check=CHECK,
    )


DETERMINISTIC = KernelBackendDescriptor(
    operator=OPERATOR,
    id="deterministic",
    summary="canonical vocabulary blocks merged in one order: the same bits at any degree and batch size",
    target="xcfg_kernels.deterministic:Deterministic",
    roles=BOTH,
    architectures=DEVICES,
    dtypes=DTYPES,
    layouts=("full-vocabulary", "vocab-parallel"),
    determinism="tensor-parallel degree, padding, batch size, threads, run-to-run",
    required_metadata=("bounds", "vocab_size", "padded_vocab_size", "tp_rank", "tp_world"),
    collectives=("all_gather",),
    options=DETERMINISTIC_OPTIONS,
    check=CHECK,
)

BACKENDS = (
    _backend("production", "torch.log_softmax in fp32, then gather: what training frameworks run"),
    _backend("reference", "max, exp, sum and log in fp32, each its own torch operation"),
    DETERMINISTIC,
)

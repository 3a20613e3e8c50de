"""The kernel backends as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json
from xcfg.model.scorer import KernelBackendDescriptor, Role

OPERATOR = "selected_logprob"
DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("cpu", "cuda")
OPTIONS: Mapping[str, Json] = {"chunk_rows": 256}
"""Default options. ``chunk_rows`` bounds the fp32 copy to that many rows of the vocabulary; it changes no bit."""


def _backend(id: str, summary: str) -> KernelBackendDescriptor:
    return KernelBackendDescriptor(
        operator=OPERATOR,
        id=id,
        summary=summary,
        target=f"xcfg_kernels.{id}:{id.capitalize()}",
        roles=(Role.ROLLOUT, Role.TRAINING),
        architectures=DEVICES,
        dtypes=DTYPES,
        options=OPTIONS,
    )


BACKENDS = (
    _backend("production", "torch.log_softmax in fp32, then gather: what training frameworks run"),
    _backend("reference", "max, exp, sum and log in fp32, each its own torch operation"),
)

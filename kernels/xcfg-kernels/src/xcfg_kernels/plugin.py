"""Hook implementations of xcfg-kernels: descriptors only."""

from __future__ import annotations

from collections.abc import Sequence

from xcfg.model.scorer import KernelBackendDescriptor
from xcfg.plugin import hookimpl
from xcfg_kernels.descriptors import BACKENDS


@hookimpl
def xcfg_kernel_backends() -> Sequence[KernelBackendDescriptor]:
    """The backends of the operator ``selected_logprob``."""
    return BACKENDS

"""Hook implementations of the fakes; their descriptors are listed but usable only with ``--allow-fake``."""

from __future__ import annotations

from collections.abc import Sequence

from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, ScorerDescriptor
from xcfg.plugin.hookspec import hookimpl
from xcfg.testing.descriptors import BACKENDS, MATERIALIZERS, SCORERS


@hookimpl
def xcfg_scorers() -> Sequence[ScorerDescriptor]:
    """The fake scorers."""
    return SCORERS


@hookimpl
def xcfg_materializers() -> Sequence[MaterializerDescriptor]:
    """How knobs reach the fake scorers."""
    return MATERIALIZERS


@hookimpl
def xcfg_kernel_backends() -> Sequence[KernelBackendDescriptor]:
    """The fake backends."""
    return BACKENDS

"""Hook implementations of xcfg-ckernel: descriptors only; no library is loaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from xcfg.model.kernel import KernelBuild
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import KernelBackendDescriptor, Role
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_kernel_backends() -> Sequence[KernelBackendDescriptor]:
    """The backend, with the builds that ``build.py`` wrote down. The first is taken where nothing is asked for."""
    builds = json.loads((Path(__file__).parent / "builds.json").read_text(encoding="utf-8"))
    return [
        KernelBackendDescriptor(
            operator="selected_logprob",
            id="ckernel",
            summary="log-sum-exp in C, one float at a time",
            target="xcfg_ckernel.backend:CKernel",
            roles=(Role.ROLLOUT, Role.TRAINING),
            dtypes=("float32",),
            lifecycle=Lifecycle.BUILD,
            builds=[KernelBuild(**build) for build in builds],
        )
    ]

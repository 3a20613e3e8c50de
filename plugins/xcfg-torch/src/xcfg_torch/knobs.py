"""The plugin's own knob, as plain data."""

from __future__ import annotations

from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target

DEVICE = Knob(
    name="torch.device",
    summary="Device kind of the torch scorers; null is CUDA where there is one, else the CPU",
    source_class=SourceClass.ARITHMETIC,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.BOTH,
    domain=Domain(kind=Kind.STR, values=("cpu", "cuda"), optional=True),
    semantic_scope=1,
    intrusion=1,
)

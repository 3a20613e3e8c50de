"""What must hold of the builds of a kernel backend."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from xcfg.model.ids import canonical
from xcfg.model.knob import Knob, Lifecycle, Target
from xcfg.model.scorer import KernelBackendDescriptor

_ARTIFACT = re.compile(r"[A-Za-z_]\w*:(?!/)(?!.*\.\.).+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CORE = "kernel."


def build_faults(backend: KernelBackendDescriptor, knobs: Collection[Knob]) -> Iterator[str]:
    """A sentence for each thing that is wrong with the builds. ``knobs`` are those of the same plugin."""
    if not backend.builds:
        return
    what = f"backend {backend.id!r} of {backend.operator!r}"
    if backend.lifecycle is not Lifecycle.BUILD:
        yield f"{what} comes in builds, so its lifecycle is {Lifecycle.BUILD.value!r}, not {backend.lifecycle.value!r}"
    names = {frozenset(build.knobs) for build in backend.builds}
    if len(names) > 1 or not all(names):
        yield f"{what}: every build needs a value for each knob that tells the builds apart"
    own = {knob.name for knob in knobs if knob.targets is Target.KERNEL and knob.lifecycle is Lifecycle.BUILD}
    for name in sorted({name for names_of_one in names for name in names_of_one}):
        if not name.startswith(_CORE) and name not in own:
            yield f"{what}: builds cannot differ in {name!r}, which is no build-time knob of core or of this plugin"
    for build in backend.builds:
        if not _ARTIFACT.fullmatch(build.artifact):
            yield f"{what}: artifact {build.artifact!r} is not of the form 'package:path/inside/it'"
        if not _SHA256.fullmatch(build.fingerprint):
            yield f"{what}: fingerprint {build.fingerprint!r} is not a SHA-256 in lower-case hex"
    if len({build.fingerprint for build in backend.builds}) < len(backend.builds):
        yield f"{what}: two builds have one fingerprint, so they do not differ"
    if len({canonical(build.knobs) for build in backend.builds}) < len(backend.builds):
        yield f"{what}: two builds are made with the same values"

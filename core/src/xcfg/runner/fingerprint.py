"""What made an attempt besides its configuration: versions, plugin code, builds. Compared when a run resumes."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from xcfg.model.case import SideConfig
from xcfg.model.json import Json
from xcfg.runner.lookup import Lookup


def fingerprint(config: SideConfig, registry: Lookup) -> dict[str, Json]:
    """Versions of core, Python and engine; source digests of the plugin code involved; builds of the operators.

    Versions alone would miss the edits of a plugin that is installed in editable form.
    """
    scorer = registry.scorer(config.scorer)
    materializers = registry.materializers(config.scorer)
    backends = [registry.backend(name, choice.backend) for name, choice in sorted(config.operators.items())]
    targets = {scorer.target, *(materializers[name].target for name in config.knobs if name in materializers)}
    targets |= {backend.target for backend in backends}
    packages = {target.partition(":")[0].partition(".")[0] for target in targets if target}
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": {name: _version(name) for name in sorted({"xcfg", *packages, *scorer.requires})},
        "code": {name: _source_digest(name) for name in sorted(packages)},
        "builds": {f"{item.operator}.{item.id}": item.build_fingerprint for item in backends},
        "environment": dict(sorted(registry.process_environment(config).items())),
    }


def difference(former: Json, now: Json, path: str = "") -> str:
    """The first thing that changed, in words; empty where nothing did."""
    if isinstance(former, dict) and isinstance(now, dict):
        for name in sorted(former.keys() | now.keys()):
            if found := difference(former.get(name), now.get(name), f"{path}.{name}" if path else name):
                return found
        return ""
    return "" if former == now else f"{path} was {former!r} and is {now!r}"


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _version(package: str) -> str:
    names = sorted(set(_distributions().get(package, ())))
    return ", ".join(f"{name} {metadata.version(name)}" for name in names)


@cache
def _source_digest(package: str) -> str:
    """SHA-256 over the Python files of a top-level package, found without importing it."""
    spec = find_spec(package)
    if spec is None:
        return ""
    roots = [Path(place) for place in spec.submodule_search_locations or ()]
    files = [path for root in roots for path in sorted(root.rglob("*.py"))]
    if not roots and spec.origin:
        files = [Path(spec.origin)]
    state = hashlib.sha256()
    for path in files:
        state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()

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
from xcfg.plugin.inventory import CORE
from xcfg.runner.builds import build_knobs, build_tasks
from xcfg.runner.lookup import Lookup


def fingerprint(config: SideConfig, registry: Lookup) -> dict[str, Json]:
    """Versions of core, plugins, Python and engine; source digests of the plugin code; builds of the operators.

    Versions alone would miss the edits of a plugin that is installed in editable form.
    """
    scorer = registry.scorer(config.scorer)
    materializers = registry.materializers(config.scorer)
    backends = [registry.backend(name, choice.backend) for name, choice in sorted(config.operators.items())]
    builds = build_tasks(config, registry)
    loaded = {(task.operator, task.backend): task.build.fingerprint for task in builds}
    applied = config.knobs.keys() - build_knobs(builds)
    targets = {scorer.target, *(materializers[name].target for name in applied)}
    targets |= {backend.target for backend in backends}
    owners = {
        registry.owner("scorer", scorer.id),
        *(registry.owner("materializer", (name, scorer.id)) for name in applied),
        *(registry.owner("backend", (backend.operator, backend.id)) for backend in backends),
    }
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "distributions": {name: metadata.version(name) for name in sorted({CORE, *owners})},
        "engine": {name: _engine_version(name) for name in scorer.requires},
        "code": {name: _source_digest(name) for name in sorted(map(_package, targets)) if name},
        "builds": {
            f"{item.operator}.{item.id}": loaded.get((item.operator, item.id), item.build_fingerprint)
            for item in backends
        },
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
def _engine_version(package: str) -> str:
    """Distributions and versions behind an import name; empty where it is not installed."""
    names = {package} if find_spec(package) is not None else set()
    try:
        return ", ".join(f"{name} {metadata.version(name)}" for name in names)
    except metadata.PackageNotFoundError:  # the distribution has another name than the package: a slow search
        names = set(metadata.packages_distributions().get(package, ()))
    return ", ".join(f"{name} {metadata.version(name)}" for name in sorted(names))


def _package(target: str) -> str:
    """The package whose code a target is: a plugin's as a whole, of core the part next to the module."""
    parts = target.partition(":")[0].split(".")
    return ".".join(parts[:2]) if parts[0] == CORE else parts[0]


@cache
def _source_digest(package: str) -> str:
    """SHA-256 over the Python files of a package, found without importing it."""
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

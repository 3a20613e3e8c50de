"""What made an attempt besides its configuration: versions, plugin code, builds. Compared when a run resumes."""

from __future__ import annotations

from collections.abc import Iterable

from xcfg.model.case import SideConfig
from xcfg.model.json import Json
from xcfg.model.scorer import KernelBackendDescriptor
from xcfg.plugin.installed import Asked, installed
from xcfg.plugin.inventory import CORE
from xcfg.runner.builds import build_knobs, build_tasks
from xcfg.runner.lookup import Lookup


def fingerprint(config: SideConfig, registry: Lookup) -> dict[str, Json]:
    """Versions of core, plugins, Python and engine; source digests of the plugin code; builds of the operators.

    Versions alone would miss the edits of a plugin that is installed in editable form.
    """
    backends = _backends(config, registry)
    loaded = {(task.operator, task.backend): task.build.fingerprint for task in build_tasks(config, registry)}
    found = installed(code_of([config], registry), registry.interpreter(config.role))
    return {
        "python": found.python,
        "machine": found.machine,
        "distributions": dict(found.distributions),
        "engine": dict(found.engine),
        "code": dict(found.code),
        "builds": {
            f"{item.operator}.{item.id}": loaded.get((item.operator, item.id), item.build_fingerprint)
            for item in backends
        },
        "environment": dict(sorted(registry.process_environment(config).items())),
    }


def code_of(configs: Iterable[SideConfig], registry: Lookup) -> Asked:
    """The code that the results of these side runs are made with."""
    owners, engines, targets = {CORE}, set[str](), set[str]()
    for config in configs:
        scorer = registry.scorer(config.scorer)
        materializers = registry.materializers(config.scorer)
        backends = _backends(config, registry)
        applied = config.knobs.keys() - build_knobs(build_tasks(config, registry))
        engines.update(scorer.requires)
        targets |= {scorer.target, *(materializers[name].target for name in applied)}
        targets |= {backend.target for backend in backends}
        owners |= {registry.owner("scorer", scorer.id)}
        owners |= {registry.owner("materializer", (name, scorer.id)) for name in applied}
        owners |= {registry.owner("backend", (backend.operator, backend.id)) for backend in backends}
    return Asked(
        distributions=sorted(owners),
        engines=sorted(engines),
        packages=[name for name in sorted({_package(target) for target in targets}) if name],
    )


def _backends(config: SideConfig, registry: Lookup) -> list[KernelBackendDescriptor]:
    return [registry.backend(name, choice.backend) for name, choice in sorted(config.operators.items())]


def difference(former: Json, now: Json, path: str = "") -> str:
    """The first thing that changed, in words; empty where nothing did."""
    if isinstance(former, dict) and isinstance(now, dict):
        for name in sorted(former.keys() | now.keys()):
            if found := difference(former.get(name), now.get(name), f"{path}.{name}" if path else name):
                return found
        return ""
    return "" if former == now else f"{path} was {former!r} and is {now!r}"


def _package(target: str) -> str:
    """The package whose code a target is: a plugin's as a whole, of core the part next to the module."""
    parts = target.partition(":")[0].split(".")
    return ".".join(parts[:2]) if parts[0] == CORE else parts[0]

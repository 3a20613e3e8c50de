"""What plugin authors import: ``hookimpl``, descriptors, protocols.

Importing this package imports neither numpy nor pluggy: names resolve on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHERE = {
    "API_VERSION": "xcfg.plugin.hookspec",
    "hookimpl": "xcfg.plugin.hookspec",
    "hookspec": "xcfg.plugin.hookspec",
    "BackendCheck": "xcfg.plugin.protocols",
    "FileReader": "xcfg.plugin.protocols",
    "HostedOperator": "xcfg.plugin.protocols",
    "Importer": "xcfg.plugin.protocols",
    "KernelBackend": "xcfg.plugin.protocols",
    "Materializer": "xcfg.plugin.protocols",
    "OperatorHost": "xcfg.plugin.protocols",
    "Prompt": "xcfg.plugin.protocols",
    "Sampler": "xcfg.plugin.protocols",
    "ScoreRequest": "xcfg.plugin.protocols",
    "Scored": "xcfg.plugin.protocols",
    "Scorer": "xcfg.plugin.protocols",
    "ScorerIdentity": "xcfg.plugin.protocols",
    "ScorerSpec": "xcfg.plugin.protocols",
    "Settings": "xcfg.plugin.protocols",
    "digest_checkpoint": "xcfg.plugin.checkpoint",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    """Import the module that defines ``name``."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)

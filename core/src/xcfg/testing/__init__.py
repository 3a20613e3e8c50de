"""The conformance kit for plugin authors: test base classes, fake scorers and mutants.

Subclass a base class in a pytest file, override the attributes and methods its docstring names, and pytest collects
every check. Names resolve on first use, so that importing this package imports neither numpy nor pytest.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

_WHERE = {
    "ExecutorTests": "xcfg.testing.executor_tests",
    "ImporterTests": "xcfg.testing.importer_tests",
    "KernelBackendTests": "xcfg.testing.kernel_backend_tests",
    "KnobTests": "xcfg.testing.knob_tests",
    "MaterializerTests": "xcfg.testing.materializer_tests",
    "PluginTests": "xcfg.testing.plugin_tests",
    "ScorerTests": "xcfg.testing.scorer_tests",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    """Import the module that defines ``name``; under pytest its assertions show their values, as a test file's do."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if (pytest := sys.modules.get("pytest")) is not None and _WHERE[name] not in sys.modules:
        pytest.register_assert_rewrite(_WHERE[name])
    return getattr(import_module(_WHERE[name]), name)

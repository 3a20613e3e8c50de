"""Importing Megatron-Core, in an environment where Transformer Engine's Python files may lie without its libraries."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from types import ModuleType

from xcfg.errors import EnvironmentFault

PACKAGE = "transformer_engine"
INSTALL = 'pip install "xcfg-megatron[engine]"'


@cache
def transformer_engine_fault() -> str:
    """Why Transformer Engine's layers cannot run here; empty where they can."""
    if find_spec(PACKAGE) is None:
        return f"{PACKAGE} is not installed"
    try:
        importlib.import_module(f"{PACKAGE}.pytorch")
    except Exception as reason:  # it looks for libraries, drivers and versions of all kinds
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
            del sys.modules[name]
        return f"{PACKAGE}.pytorch cannot be imported: {type(reason).__name__}: {str(reason).splitlines()[0]}"
    return ""


def megatron(name: str) -> ModuleType:
    """The module ``megatron.core.NAME``. Raises EnvironmentFault where Megatron-Core is missing or cannot be imported.

    Megatron-Core takes Transformer Engine for whole wherever it finds its name, and then fails to import. Where the
    libraries are not there it is told so: the name is hidden from it while it is imported, and only then.
    """
    full = f"megatron.core.{name}"
    if full in sys.modules:
        return sys.modules[full]
    if find_spec("megatron") is None:
        raise EnvironmentFault("megatron-core is not installed", where="megatron", hint=INSTALL)
    try:
        with _hidden() if transformer_engine_fault() else _as_it_is():
            return importlib.import_module(full)
    except Exception as reason:
        raise EnvironmentFault(
            f"{full} cannot be imported here: {type(reason).__name__}: {reason}", where="megatron", hint=INSTALL
        ) from reason


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def _hidden() -> Iterator[None]:
    """An import of Transformer Engine raises ImportError, which is what Megatron-Core takes for its absence."""
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == PACKAGE}
    sys.modules[PACKAGE] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[PACKAGE]
        sys.modules.update(kept)

"""Finding Transformer Engine and importing of it what runs on a device. Nothing is taken in its place."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "transformer_engine"
KERNELS = "transformer_engine.common.triton.cross_entropy"
LAUNCHER = "pytorch/triton/cross_entropy.py"
"""The file that launches the kernels. Its package needs the shared libraries, the file itself does not."""
PUBLIC = "transformer_engine.pytorch"
INSTALL = "pip install --no-deps transformer_engine==2.20.2 for its Triton kernels on a CPU, xcfg-te[cuda] for CUDA"
KNOWN = "2.19 and 2.20"
FORWARD = (
    "_input",
    "target",
    "label_smoothing",
    "reduce_loss",
    "dist_process_group",
    "ignore_idx",
    "overwrite_input",
)
BACKWARD = (
    "saved_input",
    "stats",
    "target",
    "n_non_ignore",
    "grad_output",
    "label_smoothing",
    "reduce_loss",
    "rank",
    "world_size",
    "ignore_idx",
)


class Missing(Exception):
    """Why Transformer Engine cannot serve, as a sentence."""


def folder() -> Path:
    """Where the package is. Raises Missing."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise Missing(f"{PACKAGE} is not installed in this environment ({INSTALL}; beside megatron-core in its own)")
    return Path(found.origin).parent


def version() -> str:
    """The version that the installed distribution gives itself. Raises Missing."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        raise Missing(f"{folder()} belongs to no installed distribution, so its version is unknown") from None


@cache
def digest() -> str:
    """SHA-256 in hex over the files of the kernels and of what launches them. Raises Missing."""
    found = hashlib.sha256()
    for name in ("common/triton/cross_entropy.py", LAUNCHER):
        found.update(_file(name).read_bytes())
    return found.hexdigest()


@cache
def launcher() -> ModuleType:
    """What launches the Triton kernels: ``cross_entropy_forward`` and ``cross_entropy_backward``. Raises Missing."""
    version()
    path = _file(LAUNCHER)
    spec = spec_from_file_location("xcfg_te_launcher", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    with _without_libraries():
        _imported(KERNELS)
        spec.loader.exec_module(module)
    for name, wanted in (("cross_entropy_forward", FORWARD), ("cross_entropy_backward", BACKWARD)):
        if _parameters(getattr(module, name, None)) != wanted:
            raise Missing(
                f"{PACKAGE} {version()} takes other arguments in {name} than {KNOWN} do; install one of these"
            )
    return module


@cache
def public() -> Callable[..., Any]:
    """``transformer_engine.pytorch.parallel_cross_entropy``. Raises Missing."""
    version()
    folder()
    function: Callable[..., Any] | None = getattr(_imported(PUBLIC), "parallel_cross_entropy", None)
    if function is None or "overwrite_input" not in _parameters(function):
        message = f"{PACKAGE} {version()} has no parallel_cross_entropy that leaves the logits as they were"
        raise Missing(f"{message}; {KNOWN} do")
    return function


def _file(name: str) -> Path:
    path = folder() / name
    if not path.is_file():
        raise Missing(f"{PACKAGE} {version()} has no {name}; {KNOWN} do")
    return path


def _parameters(function: Callable[..., Any] | None) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters) if callable(function) else ()


def _imported(name: str) -> ModuleType:
    """Raises Missing with whatever the import raised: it looks for libraries, drivers and versions of all kinds."""
    try:
        return importlib.import_module(name)
    except Exception as reason:
        raise Missing(f"{name} cannot be imported here: {type(reason).__name__}: {reason} ({INSTALL})") from reason


@contextmanager
def _without_libraries() -> Iterator[None]:
    """Transformer Engine's own switch for an import that loads no shared library, set during the import only."""
    before = os.environ.get("NVTE_PROJECT_BUILDING")
    os.environ["NVTE_PROJECT_BUILDING"] = "1"
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Detected a (PyTorch|Jax) installation but could not find")
            yield
    finally:
        if before is None:
            del os.environ["NVTE_PROJECT_BUILDING"]
        else:
            os.environ["NVTE_PROJECT_BUILDING"] = before

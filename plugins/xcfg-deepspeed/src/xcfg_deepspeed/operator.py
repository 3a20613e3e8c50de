"""DeepSpeed's operator for sums in shared memory: compiled once where it is wanted, and left alone where it is not.

DeepSpeed compiles it in whatever process joins ranks first, wanted or not. PyTorch guards such a build by a file that
a killed process leaves behind and that every later one waits for without end; here the guard is a lock of the operating
system, which goes with the process that holds it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from xcfg.errors import EnvironmentFault

EXTENSIONS = "TORCH_EXTENSIONS_DIR"


def load_operator() -> Any:
    """The compiled operator, which DeepSpeed takes from here on; None on a platform that has none.

    Raises EnvironmentFault where it cannot be compiled.
    """
    from deepspeed.comm.torch import build_shm_op

    folder = _folder()
    with _locked(folder.parent, f"{folder.name}.lock"), _extensions_in(folder):
        for guard in folder.glob("*/lock"):
            guard.unlink()  # nobody builds here but under the lock: it is of a process that was killed
        try:
            return build_shm_op()
        except (RuntimeError, ImportError, OSError) as error:
            raise EnvironmentFault(
                f"DeepSpeed's operator for sums in shared memory cannot be compiled: {error}",
                where="execution.collective",
                hint="execution.collective: gloo sums without it; compiling needs a C++ compiler and ninja",
            ) from error


@contextmanager
def operator_hidden() -> Iterator[None]:
    """DeepSpeed takes its operator for one that this machine cannot have: it neither compiles nor opens it."""
    from deepspeed import ops

    compatible, name = ops.__compatible_ops__, _name()
    before = compatible.get(name, False)
    compatible[name] = False
    try:
        yield
    finally:
        compatible[name] = before


def _name() -> str:
    from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder

    return str(ShareMemCommBuilder.NAME)


def _folder() -> Path:
    """A folder for these versions: an operator compiled against another torch or Python is never loaded."""
    from torch.utils.cpp_extension import get_default_build_root

    root = Path(os.environ.get(EXTENSIONS) or get_default_build_root())
    versions = f"torch-{version('torch')}-deepspeed-{version('deepspeed')}"
    return root / "xcfg" / f"{versions}-{sys.implementation.cache_tag}"


@contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _extensions_in(folder: Path) -> Iterator[None]:
    before = os.environ.get(EXTENSIONS)
    os.environ[EXTENSIONS] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[EXTENSIONS]
        else:
            os.environ[EXTENSIONS] = before

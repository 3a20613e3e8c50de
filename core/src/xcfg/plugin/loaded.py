"""Which file a native function lives in, as the dynamic loader says."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from xcfg.plugin.checkpoint import file_digest


class _Info(ctypes.Structure):
    """``Dl_info`` of ``dladdr(3)``."""

    _fields_ = (
        ("dli_fname", ctypes.c_char_p),
        ("dli_fbase", ctypes.c_void_p),
        ("dli_sname", ctypes.c_char_p),
        ("dli_saddr", ctypes.c_void_p),
    )


def loaded_file(function: Any) -> Path:
    """The shared library that a ctypes function is in.

    The path a library was asked for proves nothing: the loader gives back one that it has already under the same name.
    Raises LookupError where no library has the function's address.
    """
    info = _Info()
    address = ctypes.cast(function, ctypes.c_void_p)
    if not ctypes.CDLL(None).dladdr(address, ctypes.byref(info)) or not info.dli_fname:
        raise LookupError(f"no loaded library has the address of {function!r}")
    return Path(info.dli_fname.decode())


def loaded_digest(function: Any) -> str:
    """SHA-256 of that library's file: what ``KernelBackend.identify`` gives as ``build``."""
    return file_digest(loaded_file(function))

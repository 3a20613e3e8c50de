"""The Python of the page on build-time kernels."""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib

from xcfg.model.kernel import BoundKernel
from xcfg.plugin.loaded import loaded_file
from xcfg.plugin.registry import load_registry

from . import ckernel
from .bench import Bench


def build_time_kernels(bench: Bench) -> None:
    """The descriptor loads with its two builds; ``identify`` tells the file that a function is in."""
    ckernel.install(bench.here / "site")
    bench.monkeypatch.syspath_prepend(bench.here / "site")
    found = load_registry().backend("selected_logprob", "ckernel")
    assert [dict(build.knobs) for build in found.builds] == [{"kernel.fast_math": False}, {"kernel.fast_math": True}]
    bench.left.pop(0)
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    identify = bench.run(BoundKernel=BoundKernel)["identify"]
    bound = type("Bound", (), {"function": library.cos})
    digest = hashlib.sha256(loaded_file(library.cos).read_bytes()).hexdigest()
    assert identify(None, bound).build == digest

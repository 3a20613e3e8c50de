"""The environment of a side's processes: a short list from the caller, then what plugins declare."""

from __future__ import annotations

import os
from collections.abc import Mapping

from xcfg.model.case import SideConfig
from xcfg.runner.lookup import Lookup

INHERITED = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "TZ",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "XDG_CACHE_HOME",
        "HF_HOME",
        "TRITON_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
        "CUDA_HOME",
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "GLOO_SOCKET_IFNAME",
        "NCCL_SOCKET_IFNAME",
    }
)
"""Where things are and which devices and networks exist; nothing that chooses an algorithm."""

LAUNCH = "XCFG_LAUNCH"
"""Carried by every process of a launch, so that a stray one can be told from others."""


def declared_environment(config: SideConfig, registry: Lookup, launch: str) -> dict[str, str]:
    """What a launch sets itself. Raises PluginError where plugins disagree."""
    own = {"PYTHONUNBUFFERED": "1", LAUNCH: launch}  # unbuffered: a killed process leaves its last words
    return {**registry.process_environment(config), **own}


def child_environment(declared: Mapping[str, str], machine: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The whole environment of one engine's processes: what is declared, and a short list from the machine."""
    inherited = {name: value for name, value in machine.items() if name in INHERITED or name.startswith("LC_")}
    return {**inherited, **declared}

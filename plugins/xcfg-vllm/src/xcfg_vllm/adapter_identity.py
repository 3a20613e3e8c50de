"""What a LoRA adapter's folder holds, as one value: a folder that changes under one path is another adapter."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xcfg.model.ids import digest
from xcfg.plugin.checkpoint import file_digest

VARIABLE = "XCFG_VLLM_LORA"
"""The digest of the adapter that a side's process is to load. What a resumed run takes over has the same one."""
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


def adapter_digest(folder: Path) -> str:
    """SHA-256 over both files of an adapter as PEFT writes it; empty where one is missing."""
    files = [folder / name for name in (CONFIG, WEIGHTS)]
    if not all(path.is_file() for path in files):
        return ""
    return digest({path.name: _digest(path, path.stat().st_mtime_ns, path.stat().st_size) for path in files})


@cache
def _digest(path: Path, _changed: int, _size: int) -> str:
    return file_digest(path)

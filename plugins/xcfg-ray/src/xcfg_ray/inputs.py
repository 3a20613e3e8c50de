"""The files that a launch reads."""

from __future__ import annotations

from pathlib import Path

from xcfg.plugin.executor import Job


def read_inputs(job: Job) -> dict[str, bytes]:
    """The content of every input, by its path relative to the output folder."""
    root = Path(job.root)
    found = [root / name for name in job.inputs]
    files = [path for item in found for path in (sorted(item.rglob("*")) if item.is_dir() else [item])]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files if path.is_file()}

"""Recorded files of the generic layout, and both sides compared through the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def record(id: Any = "a", **fields: Any) -> dict[str, Any]:
    """One record of three tokens; fields given by keyword replace those of the template."""
    return {"id": id, "response_ids": [5, 6, 7], "logprobs": [-1.0, -2.0, -3.0], "dtype": "bfloat16", **fields}


def write(path: Path, records: Sequence[dict[str, Any]] | str | bytes) -> Path:
    """A JSONL file of records, or the text or bytes themselves."""
    if isinstance(records, bytes):
        path.write_bytes(records)
    elif isinstance(records, str):
        path.write_text(records)
    else:
        path.write_text("".join(json.dumps(item) + "\n" for item in records))
    return path


def compared(xcfg: Callable[..., Any], folder: Path, rollout: Any, training: Any, *options: object) -> Any:
    """``xcfg compare rollout.jsonl training.jsonl --json`` with the two files written first."""
    paths = write(folder / "rollout.jsonl", rollout), write(folder / "training.jsonl", training)
    return xcfg("compare", *paths, "--json", *options)

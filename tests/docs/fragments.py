"""Fragments of experiment files made whole, in a folder that has what they name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from .snippets import ROOT

WHOLE: dict[str, Any] = {
    "schema": "xcfg.experiment/1",
    "name": "snippet",
    "checkpoint": {"path": "qwen3-tiny"},
    "rollout": {"scorer": "vllm"},
    "training": {"scorer": "torch"},
    "tokens": {"sample": {"prompts": "prompts.jsonl", "max_new_tokens": 4}},
}
"""What a fragment leaves out."""
_DEPTH = "a/b/c"
"""Folders that an experiment lies in, for paths that leave its own."""


def complete(text: str, folder: Path, **changes: Any) -> Path:
    """The experiment file of a fragment, with the checkpoints, prompts and tokens that it names.

    Its fields are those of ``WHOLE``, then the fragment's, then ``changes``.
    """
    fragment = YAML(typ="safe").load(text)
    assert isinstance(fragment, dict), text
    content = {**WHOLE, **fragment, **changes}
    root = folder / _DEPTH
    root.mkdir(parents=True)
    for path in (content["checkpoint"]["path"], *content.get("derived", {}).values()):
        _checkpoint((root / path).resolve())
    (root / "prompts.jsonl").write_text('{"id": "p0", "token_ids": [5, 6]}\n')
    (root / "tokens.jsonl").write_text('{"id": "p0", "prompt_ids": [5, 6], "response_ids": [7, 8]}\n')
    target = root / "snippet.yaml"
    with target.open("w") as handle:
        YAML().dump(content, handle)
    return target


def _checkpoint(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(ROOT / "docs/examples/qwen3-tiny" / name, folder)

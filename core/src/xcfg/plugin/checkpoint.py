"""Content digests of a Hugging Face model directory: weights with configuration, and tokenizer."""

from __future__ import annotations

import hashlib
from pathlib import Path

from attrs import frozen

from xcfg.model.ids import digest

_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "config.json")
_TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
)
_BLOCK = 1 << 20


@frozen(kw_only=True)
class CheckpointDigest:
    """``weights`` covers weight files and ``config.json``; ``tokenizer`` the tokenizer files. Empty where none is.

    ``base`` is ``weights`` of the checkpoint that this one is declared to be made from.
    """

    weights: str
    tokenizer: str
    base: str = ""


def file_digest(path: Path) -> str:
    """SHA-256 of one file's bytes, read in blocks of 1 MiB."""
    state = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(_BLOCK):
            state.update(block)
    return state.hexdigest()


def _digest_of(folder: Path, patterns: tuple[str, ...]) -> str:
    files = sorted({path for pattern in patterns for path in folder.glob(pattern)}, key=lambda path: path.name)
    return digest({path.name: file_digest(path) for path in files}) if files else ""


def digest_checkpoint(folder: Path) -> CheckpointDigest:
    """Digest the files of a model directory. Raises FileNotFoundError where the folder is missing."""
    if not folder.is_dir():
        raise FileNotFoundError(f"no model directory at {folder}")
    return CheckpointDigest(weights=_digest_of(folder, _WEIGHTS), tokenizer=_digest_of(folder, _TOKENIZER))

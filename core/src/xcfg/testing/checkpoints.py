"""Model directories for the fake scorers."""

from __future__ import annotations

from pathlib import Path

from xcfg.model.codec import dump_json


def write_checkpoint(folder: Path, *, vocab_size: int = 64, seed: int = 0, eos_token_id: int | None = None) -> Path:
    """Write a directory that the fake scorers open: configuration and a stand-in for the tokenizer; returns it.

    The fake's weights are drawn from the content's digest, so another ``seed`` is another model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "xcfg-fake", "vocab_size": vocab_size, "eos_token_id": eos_token_id, "seed": seed}
    (folder / "config.json").write_text(dump_json(config), encoding="utf-8")
    (folder / "tokenizer.json").write_text(dump_json({"bytes": vocab_size}), encoding="utf-8")
    return folder

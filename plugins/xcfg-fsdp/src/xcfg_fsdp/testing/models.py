"""Tiny models whose heads divide by four ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xcfg_torch.testing.tiny_model import make_tiny_qwen3


def make_even_qwen3(folder: Path, **changes: Any) -> Path:
    """The tiny Qwen3 with four key-value heads and ``changes`` to its configuration; its weights are random."""
    import torch
    import transformers

    make_tiny_qwen3(folder)
    config = transformers.Qwen3Config.from_pretrained(folder)
    config.update({"num_key_value_heads": 4, **changes})
    torch.manual_seed(1)
    transformers.Qwen3ForCausalLM(config).to(torch.float32).save_pretrained(folder)
    return folder

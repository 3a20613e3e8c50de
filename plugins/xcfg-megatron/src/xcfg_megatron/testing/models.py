"""Tiny models with random weights, in the shapes that ranks can and cannot share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xcfg_torch.testing.tiny_model import MAX_POSITIONS, VOCABULARY


def make_tiny(
    folder: Path, architecture: str = "Qwen3", *, dtype: str = "float32", seed: int = 0, **sizes: Any
) -> Path:
    """Write a model directory without tokenizer: eight query heads, four key-value heads, four layers by default.

    ``sizes`` are changes to transformers' configuration of ``architecture`` (``Qwen3``, ``Qwen2``, ``Llama``). Every
    parameter is random, so that no two can be taken for one another: biases, and norms around 1.
    """
    import torch
    import transformers

    config = getattr(transformers, f"{architecture}Config")(
        **{
            "vocab_size": VOCABULARY,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 4,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "max_position_embeddings": MAX_POSITIONS,
            "tie_word_embeddings": False,
            "bos_token_id": None,
            "eos_token_id": 0,
            "pad_token_id": 0,
            "initializer_range": 0.2,
            **({"head_dim": 16} if architecture == "Qwen3" else {}),
            **sizes,
        }
    )
    torch.manual_seed(seed)
    model = getattr(transformers, f"{architecture}ForCausalLM")(config).to(getattr(torch, dtype))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.copy_(("norm" in name) + 0.2 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    return folder

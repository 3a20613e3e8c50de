"""A tiny model whose heads divide over four ranks."""

from __future__ import annotations

from pathlib import Path

from xcfg_torch.testing.tiny_model import MAX_POSITIONS, VOCABULARY


def make_wide_qwen3(folder: Path) -> Path:
    """Write a Qwen3 with 8 query and 4 key-value heads, random weights in float32 and no tokenizer; returns ``folder``.

    The hidden size is four of the 64-column grains by which DeepSpeed splits an output head.
    """
    import torch
    import transformers

    config = transformers.Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=16,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
        initializer_range=0.1,
    )
    torch.manual_seed(0)
    transformers.Qwen3ForCausalLM(config).to(torch.float32).save_pretrained(folder)
    return folder

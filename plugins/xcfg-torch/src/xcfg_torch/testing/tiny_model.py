"""A tiny Qwen3 with random weights and a byte-level tokenizer, made in a second; its logprobs mean nothing."""

from __future__ import annotations

from pathlib import Path

from xcfg.model.sample import TokenBatch

VOCABULARY = 256
MAX_POSITIONS = 128


def make_tiny_qwen3(
    folder: Path, *, dtype: str = "float32", seed: int = 0, layers: int = 2, kv_heads: int = 2, tied: bool = False
) -> Path:
    """Write the model directory (safetensors, config, tokenizer) and return it."""
    import torch
    import transformers

    config = transformers.Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=kv_heads,
        head_dim=16,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=tied,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
        initializer_range=0.2,
    )
    torch.manual_seed(seed)
    model = transformers.Qwen3ForCausalLM(config).to(getattr(torch, dtype))
    model.save_pretrained(folder)
    _byte_tokenizer().save_pretrained(folder)
    return folder


def ragged_batch(sequences: int = 7, *, seed: int = 0, longest: int = 24) -> TokenBatch:
    """Random tokens, every length different from its neighbour's; the last response token of each is not active."""
    import numpy as np

    random = np.random.default_rng(seed)
    lengths = [(int(random.integers(2, longest)), int(random.integers(2, longest))) for _ in range(sequences)]
    prompts = [random.integers(1, VOCABULARY, size=prompt).tolist() for prompt, _ in lengths]
    responses = [random.integers(1, VOCABULARY, size=response).tolist() for _, response in lengths]
    masks = [[True] * (len(response) - 1) + [False] for response in responses]
    return TokenBatch(
        ids=[f"s{index}" for index in range(sequences)], prompts=prompts, responses=responses, action_masks=masks
    )


def _byte_tokenizer() -> object:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {letter: index for index, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)

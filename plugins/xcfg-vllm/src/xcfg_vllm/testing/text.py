"""Token batches cut from a text, so that a trained model's logprobs have a language model's shape."""

from __future__ import annotations

from pathlib import Path

from xcfg.model.sample import TokenBatch


def text_batch(checkpoint: Path, text: str, *, sequences: int = 6, prompt: int = 20, response: int = 40) -> TokenBatch:
    """``sequences`` neighbouring stretches of ``text``, by the checkpoint's tokenizer; each a token shorter."""
    from tokenizers import Tokenizer

    ids = Tokenizer.from_file(str(checkpoint / "tokenizer.json")).encode(text).ids
    length = prompt + response
    if len(ids) < sequences * length:
        raise ValueError(f"{len(ids)} tokens are fewer than {sequences} sequences of {length}")
    starts = [index * length for index in range(sequences)]
    responses = [ids[start + prompt : start + length - index] for index, start in enumerate(starts)]
    return TokenBatch(
        ids=[f"text-{index}" for index in range(sequences)],
        prompts=[ids[start : start + prompt] for start in starts],
        responses=responses,
        action_masks=[[True] * len(row) for row in responses],
    )

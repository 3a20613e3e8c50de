"""A float64 oracle that shares no code with the scorer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from xcfg.model.sample import TokenBatch


def oracle_logprobs(checkpoint: Path, batch: TokenBatch) -> list[np.ndarray]:
    """For each sequence its response tokens' logprobs (nats, float64).

    Each sequence passes alone and unpadded through the model in float64; the log-softmax is numpy's, by hand.
    """
    import torch
    from transformers import Qwen3ForCausalLM

    model = Qwen3ForCausalLM.from_pretrained(checkpoint, dtype=torch.float64, attn_implementation="eager").eval()
    found: list[np.ndarray] = []
    for prompt, response in zip(batch.prompts, batch.responses, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *response]])).logits[0].numpy()
        values = []
        for index, token in enumerate(response):
            row = logits[len(prompt) + index - 1]
            values.append(row[token] - row.max() - np.log(np.exp(row - row.max()).sum()))
        found.append(np.array(values))
    return found

"""Validation loss of the saved model on the held-out text.

``python evaluate.py`` loads the bf16 checkpoint, computes in float32, and prints nats a token and nats a byte.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from corpus import MODEL_FOLDER, split_corpus
from tokenizer import EOS
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, PreTrainedModel

CONTEXT = 512
"""Tokens in one window; also the model's largest number of positions."""


def encode(tokenizer: Tokenizer, documents: list[str]) -> torch.Tensor:
    """Token ids, int64 ``[tokens]``: every document followed by the end-of-text token."""
    eos = tokenizer.token_to_id(EOS)
    return torch.tensor([i for item in tokenizer.encode_batch(documents) for i in (*item.ids, eos)])


@torch.inference_mode()
def validation_loss(model: PreTrainedModel, ids: torch.Tensor) -> float:
    """Mean negative log-probability in nats a token over every predicted token of ``ids``, int64 ``[tokens]``.

    The text is cut into windows of ``CONTEXT`` tokens, the last token of one being the first of the next, and each
    window starts without a past. Logits are summed up in float64.
    """
    model.eval()
    total, count = 0.0, 0
    for start in range(0, len(ids) - 1, CONTEXT - 1):
        window = ids[start : start + CONTEXT]
        logp = model(window[None, :-1]).logits[0].double().log_softmax(-1)
        total -= logp.gather(1, window[1:, None]).sum().item()
        count += len(window) - 1
    return total / count


def main() -> None:
    """Print the loss of a saved model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL_FOLDER)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bytes", type=int, default=2_300_000)
    options = parser.parse_args()
    _, held = split_corpus(options.seed, options.bytes)
    ids = encode(Tokenizer.from_file(str(options.model / "tokenizer.json")), held)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    loss, size = validation_loss(model, ids), sum(len(document.encode()) for document in held)
    print(f"held out: {len(held)} documents, {size} bytes, {len(ids)} tokens")
    print(f"validation loss: {loss:.4f} nats a token, {loss * len(ids) / size:.4f} nats a byte")


if __name__ == "__main__":
    main()

"""Train the tiny Qwen3 and write it as a Hugging Face folder.

``python train.py`` needs torch and transformers, and about ten minutes of one CPU core. The same seed on the same
processor type with the same torch and number of threads gives the same weights. One thread is the default: beside other
work, threads spend more time waiting for each other than the second one saves.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

import torch
from corpus import MODEL_FOLDER, split_corpus
from evaluate import CONTEXT, encode, validation_loss
from tokenizer import EOS, PAD, VOCABULARY, save_tokenizer, train_tokenizer
from tokenizers import Tokenizer
from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

CLIP_NORM = 1.0
WARM_UP = 60
"""Steps over which the learning rate rises from 0."""


def tiny_config(tokenizer: Tokenizer) -> Qwen3Config:
    """4 layers, hidden 192, 6 query and 2 key-value heads of 32, untied: 1.97 million parameters."""
    return Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        use_cache=True,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(EOS),
        pad_token_id=tokenizer.token_to_id(PAD),
    )


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Linear rise over ``WARM_UP`` steps, then a half cosine down to a fiftieth of ``peak``."""
    if step < WARM_UP:
        return peak * (step + 1) / WARM_UP
    progress = (step - WARM_UP) / max(1, steps - WARM_UP)
    return peak * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))


def fit(model: Qwen3ForCausalLM, ids: torch.Tensor, options: argparse.Namespace) -> None:
    """Train ``model`` in float32 on windows of ``ids``, int64 ``[tokens]``: epochs in a shuffled order.

    Windows are half of ``CONTEXT`` long, which is cheaper, and whole in the last fifth of the steps, which teaches the
    later positions; a step has the same number of tokens throughout.
    """
    decayed = [weight for weight in model.parameters() if weight.ndim > 1]
    kept = [weight for weight in model.parameters() if weight.ndim == 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": kept, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    generator = torch.Generator().manual_seed(options.seed)
    starts: list[int] = []
    length, rows = CONTEXT // 2, options.batch
    began = time.monotonic()
    model.train()
    for step in range(options.steps):
        if step == options.steps * 4 // 5:
            starts, length, rows = [], CONTEXT, options.batch // 2
        if len(starts) < rows:
            # A new offset each epoch, so that windows are not cut at the same places again.
            offset = int(torch.randint(length, (1,), generator=generator))
            grid = torch.arange(offset, len(ids) - length, length)
            starts += grid[torch.randperm(len(grid), generator=generator)].tolist()
        batch = torch.stack([ids[start : start + length + 1] for start in starts[:rows]])
        del starts[:rows]
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options.steps, options.lr)
        logits = model(batch[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        if step % 50 == 0 or step + 1 == options.steps:
            print(f"step {step} loss {loss.item():.3f} after {time.monotonic() - began:.0f} s", flush=True)


def save(model: Qwen3ForCausalLM, tokenizer: Tokenizer, out: Path) -> None:
    """Write every file into a sibling folder first, then move each into ``out``, so none is ever half written."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        model.generation_config = GenerationConfig(
            do_sample=True,
            temperature=1.0,
            eos_token_id=model.config.eos_token_id,
            pad_token_id=model.config.pad_token_id,
        )
        model.save_pretrained(scratch)
        save_tokenizer(tokenizer, Path(scratch), CONTEXT)
        for path in sorted(Path(scratch).iterdir()):
            path.chmod(0o644)
            path.replace(out / path.name)


def main() -> None:
    """Make text, tokenizer and model, and print the validation loss of what was saved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=MODEL_FOLDER)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bytes", type=int, default=2_300_000, help="size of the text, training and held out")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--batch", type=int, default=8, help=f"windows of {CONTEXT // 2} tokens a step")
    parser.add_argument("--lr", type=float, default=3e-3, help="peak learning rate")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(True)
    # Nothing here reads uninitialised memory; filling it costs a tenth of the time.
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.manual_seed(options.seed)

    train, held = split_corpus(options.seed, options.bytes)
    tokenizer = train_tokenizer(train)
    ids, held_ids = encode(tokenizer, train), encode(tokenizer, held)
    model = Qwen3ForCausalLM(tiny_config(tokenizer))
    print(f"{model.num_parameters()} parameters; {len(ids)} tokens to train on, {len(held_ids)} held out", flush=True)
    fit(model, ids, options)
    save(model.to(torch.bfloat16), tokenizer, options.out)
    # The loss that counts is that of the rounded weights, and ``to`` has rounded the rotary frequencies as well.
    saved = Qwen3ForCausalLM.from_pretrained(options.out, dtype=torch.float32)
    loss, size = validation_loss(saved, held_ids), sum(len(document.encode()) for document in held)
    print(f"validation loss: {loss:.4f} nats a token, {loss * len(held_ids) / size:.4f} nats a byte")


if __name__ == "__main__":
    main()

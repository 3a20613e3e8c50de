"""Sample from the saved model in bf16 and say what its log-probabilities look like.

``python sample.py`` draws 96 tokens at temperature 1 after each prompt, end of text or not, on one thread.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from corpus import MODEL_FOLDER
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel


@torch.inference_mode()
def sample(model: PreTrainedModel, prompt: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """``count`` tokens after ``prompt``, int64 ``[length]``, by cached decoding.

    Returns all ids, int64 ``[length + count]``, and the new ones' logprobs in nats, float32 ``[count]``.
    """
    ids, step, past = prompt, prompt, None
    chosen = []
    for _ in range(count):
        output = model(step[None], past_key_values=past, use_cache=True)
        past = output.past_key_values
        logp = output.logits[0, -1].float().log_softmax(-1)
        step = torch.multinomial(logp.exp(), 1)
        chosen.append(logp[step])
        ids = torch.cat([ids, step])
    return ids, torch.cat(chosen)


@torch.inference_mode()
def rescore(model: PreTrainedModel, ids: torch.Tensor, count: int) -> torch.Tensor:
    """Logprobs in nats, float32 ``[count]``, of the last ``count`` of ``ids`` in one forward without a cache."""
    logp = model(ids[None, :-1]).logits[0].float().log_softmax(-1)
    return logp.gather(1, ids[1:, None])[-count:, 0]


def main() -> None:
    """Print the figures the model's README quotes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL_FOLDER)
    parser.add_argument("--prompts", type=Path, default=MODEL_FOLDER.with_name("qwen3-tiny-prompts.jsonl"))
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    low = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16).eval()
    full = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32).eval()
    sampled, drift, tokens, longest = [], [], [], 0
    for line in options.prompts.read_text(encoding="utf-8").splitlines():
        ids, logp = sample(low, torch.tensor(tokenizer(json.loads(line)["text"]).input_ids), options.tokens)
        sampled.append(logp)
        drift.append(rescore(full, ids, options.tokens) - logp)
        tokens.append(ids[-options.tokens :])
        longest = max(longest, len(ids))
    logp, d, ids = torch.cat(sampled).double(), torch.cat(drift).double().abs(), torch.cat(tokens)
    print(f"{len(logp)} tokens, {ids.unique().numel()} distinct, {(ids == tokenizer.eos_token_id).sum()} end of text")
    print(f"ids {ids.min()} to {ids.max()}, longest sequence {longest}")
    print(f"logprob in nats: mean {logp.mean():.3f}, min {logp.min():.2f}")
    print(f"above -0.05: {(logp > -0.05).double().mean():.1%}, below -5: {(logp < -5).double().mean():.1%}")
    print(f"abs(d) of the bf16 decode against a float32 forward: max {d.max():.3f}, mean {d.mean():.4f}")


if __name__ == "__main__":
    main()

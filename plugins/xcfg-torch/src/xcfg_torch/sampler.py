"""Sampling a token batch: one prompt at a time, so that no response depends on which prompts came with it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.model.experiment import SampleSource
from xcfg.model.sample import TokenBatch
from xcfg.plugin import Prompt, ScorerSpec
from xcfg_torch.limits import check_tokens
from xcfg_torch.live import Live
from xcfg_torch.loading import load_tokenizer
from xcfg_torch.semantics import max_positions, vocab_size


def sample_responses(live: Live, spec: ScorerSpec, prompts: Sequence[Prompt], source: SampleSource) -> TokenBatch:
    """One response a prompt, with raw logprobs (temperature 1, nats) of the tokens drawn; every token is active.

    A response ends at the model's end-of-sequence token, which it then includes, or after ``max_new_tokens``;
    temperature 0 takes the likeliest token. Raises UnsupportedError for top-p and top-k, InvalidInput for a prompt
    that is empty, outside the vocabulary, or leaves no room for the response.
    """
    if source.top_p != 1.0 or source.top_k != 0:
        raise UnsupportedError("the torch scorer samples from the whole vocabulary: top_p 1 and top_k 0")
    rows = [_prompt_tokens(spec, prompt) for prompt in prompts]
    limit = max_positions(live.model)
    room = None if limit is None else limit - source.max_new_tokens
    for prompt, row in zip(prompts, rows, strict=True):
        if not row:
            raise InvalidInput("the prompt has no token", where=prompt.id)
        check_tokens(prompt.id, row, columns=vocab_size(live.model), positions=room)
    drawn = [_respond(live, prompt.id, row, source) for prompt, row in zip(prompts, rows, strict=True)]
    return TokenBatch(
        ids=[prompt.id for prompt in prompts],
        prompts=rows,
        responses=[tokens for tokens, _ in drawn],
        action_masks=[(True,) * len(tokens) for tokens, _ in drawn],
        sampled_logprobs=tuple(tuple(logprobs) for _, logprobs in drawn),
    )


def _prompt_tokens(spec: ScorerSpec, prompt: Prompt) -> tuple[int, ...]:
    if prompt.token_ids:
        return tuple(prompt.token_ids)
    tokenizer = load_tokenizer(spec.checkpoint, trust_remote_code=spec.trust_remote_code)
    return tuple(tokenizer(prompt.text)["input_ids"])


def _respond(live: Live, name: str, prompt: tuple[int, ...], source: SampleSource) -> tuple[list[int], list[float]]:
    import torch

    generator = torch.Generator().manual_seed(_seed(source.seed, name))
    stop = set() if source.ignore_eos else _end_tokens(live.model)
    tokens: list[int] = []
    logprobs: list[float] = []
    step, cache = torch.tensor([prompt], device=live.device), None
    with torch.no_grad():
        while len(tokens) < source.max_new_tokens and not (tokens and tokens[-1] in stop):
            seen = len(prompt) + max(len(tokens) - 1, 0)
            mask = torch.ones((1, len(prompt) + len(tokens)), dtype=torch.int64, device=live.device)
            first = 0 if cache is None else seen
            positions = torch.arange(first, first + step.shape[1], device=live.device)[None]
            output = live.model(
                input_ids=step, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True
            )
            cache, row = output.past_key_values, output.logits[0, -1].float().cpu()
            token = _draw(row, source.temperature, generator)
            tokens.append(token)
            logprobs.append(float(torch.log_softmax(row, dim=-1)[token]))
            step = torch.tensor([[token]], device=live.device)
    return tokens, logprobs


def _draw(row: Any, temperature: float, generator: Any) -> int:
    import torch

    if temperature == 0.0:
        return int(row.argmax())
    return int(torch.multinomial(torch.softmax(row / temperature, dim=-1), 1, generator=generator))


def _seed(seed: int, name: str) -> int:
    """A generator seed (63 bits) of its own for every prompt id."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "big") >> 1


def _end_tokens(model: Any) -> set[int]:
    ends = model.generation_config.eos_token_id if model.can_generate() else model.config.eos_token_id
    return set() if ends is None else ({ends} if isinstance(ends, int) else set(ends))

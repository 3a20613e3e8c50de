"""What the configuration says a logprob means."""

from __future__ import annotations

import pytest
import transformers

from xcfg_torch.semantics import logprob_semantics, max_positions, vocab_size

TINY = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": 32,
}


@pytest.mark.parametrize(
    ("config", "scale", "softcap"),
    [
        (transformers.Gemma2Config(**TINY, final_logit_softcapping=30.0), 1.0, 30.0),
        (transformers.CohereConfig(**TINY, logit_scale=0.0625, pad_token_id=0), 0.0625, 0.0),
        (transformers.GraniteConfig(**TINY, logits_scaling=8.0), 0.125, 0.0),
        (transformers.Qwen3Config(**TINY), 1.0, 0.0),
    ],
)
def test_scale_and_soft_cap(config, scale, softcap) -> None:
    model = transformers.AutoModelForCausalLM.from_config(config)
    semantics = logprob_semantics(model, columns=vocab_size(model))
    assert (semantics.logit_scale, semantics.logit_softcap, semantics.vocab_size) == (scale, softcap, 40)
    assert max_positions(model) == 32

"""What a logprob of a model means, and the limits its configuration sets."""

from __future__ import annotations

from typing import Any

from xcfg.model.identity import LogprobSemantics


def text_config(model: Any) -> Any:
    """The configuration of the language model, inside that of a multimodal model too."""
    return model.config.get_text_config()


def vocab_size(model: Any) -> int:
    """Columns of the logits: rows of the output head, padded ones included."""
    head = model.get_output_embeddings()
    return int(head.weight.shape[0]) if head is not None else int(text_config(model).vocab_size)


def max_positions(model: Any) -> int | None:
    """Most tokens a sequence may have; None where the configuration sets no limit."""
    limit = getattr(text_config(model), "max_position_embeddings", None)
    return None if limit is None else int(limit)


def logprob_semantics(model: Any, *, columns: int) -> LogprobSemantics:
    """Raw logprobs at temperature 1 over ``columns`` logits, with the model's own scale and soft cap of its logits.

    The model applies both itself: Gemma's ``final_logit_softcapping``, Cohere's ``logit_scale`` (a factor), Granite's
    ``logits_scaling`` (a divisor).
    """
    config = text_config(model)
    scale = float(getattr(config, "logit_scale", None) or 1.0)
    divisor = float(getattr(config, "logits_scaling", None) or 1.0)
    softcap = float(getattr(config, "final_logit_softcapping", None) or 0.0)
    return LogprobSemantics(logit_scale=scale / divisor, logit_softcap=softcap, vocab_size=columns)

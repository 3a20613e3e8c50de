"""Token batches a model cannot score, refused before the forward pass."""

from __future__ import annotations

from xcfg.errors import InvalidInput
from xcfg.model.sample import TokenBatch


def check_batch(batch: TokenBatch, *, columns: int, positions: int | None) -> None:
    """Raise InvalidInput for an empty prompt, a token outside the vocabulary or a sequence beyond the positions."""
    for name, prompt, response in zip(batch.ids, batch.prompts, batch.responses, strict=True):
        if not prompt:
            raise InvalidInput("the prompt is empty: nothing scores the first response token", where=name)
        check_tokens(name, (*prompt, *response), columns=columns, positions=positions)


def check_tokens(name: str, tokens: tuple[int, ...], *, columns: int, positions: int | None) -> None:
    """Raise InvalidInput where a token is outside ``columns`` or there are more than ``positions`` tokens."""
    outside = next((at for at, token in enumerate(tokens) if not 0 <= token < columns), None)
    if outside is not None:
        raise InvalidInput(
            f"token {tokens[outside]} at position {outside} is outside the model's vocabulary of {columns}",
            where=name,
            hint="the tokens come from another tokenizer, or from another model",
        )
    if positions is not None and len(tokens) > positions:
        raise InvalidInput(
            f"{len(tokens)} tokens exceed the model's max_position_embeddings of {positions}", where=name
        )

"""Tokens the engine cannot take, refused before they are submitted."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from xcfg.errors import InvalidInput
from xcfg.model.sample import TokenBatch


@frozen(kw_only=True)
class Limits:
    """``vocabulary`` token ids the model knows, ``length`` most tokens a sequence may have in the engine."""

    vocabulary: int
    length: int

    def check_batch(self, batch: TokenBatch, *, room: int = 0) -> None:
        """Raise InvalidInput for an empty prompt, a token outside the vocabulary or a sequence that is too long.

        ``room`` is what the scoring path needs beyond the sequence.
        """
        for name, prompt, response in zip(batch.ids, batch.prompts, batch.responses, strict=True):
            self.check(name, prompt, response, room=room)

    def check(self, name: str, prompt: Sequence[int], response: Sequence[int] = (), *, room: int = 0) -> None:
        """One sequence of :meth:`check_batch`."""
        if not prompt:
            raise InvalidInput("the prompt is empty: nothing scores the first response token", where=name)
        tokens = (*prompt, *response)
        outside = next((at for at, token in enumerate(tokens) if not 0 <= token < self.vocabulary), None)
        if outside is not None:
            raise InvalidInput(
                f"token {tokens[outside]} at position {outside} is outside the model's vocabulary of {self.vocabulary}",
                where=name,
                hint="the tokens come from another tokenizer, or from another model",
            )
        if len(tokens) + room > self.length:
            more = f" and {room} to generate" if room else ""
            raise InvalidInput(
                f"{len(tokens)} tokens{more} exceed the engine's longest sequence of {self.length}",
                where=name,
                hint="raise vllm.max_model_len where it is below the model's max_position_embeddings",
            )

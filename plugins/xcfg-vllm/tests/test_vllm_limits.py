"""Tokens the engine cannot take are refused with a sentence that names the sequence."""

from __future__ import annotations

import pytest

from xcfg.errors import InvalidInput
from xcfg.model.sample import TokenBatch
from xcfg_vllm.limits import Limits
from xcfg_vllm.scoring import room

LIMITS = Limits(vocabulary=10, length=6)


def _batch(prompt, response) -> TokenBatch:
    return TokenBatch(ids=["seq"], prompts=[prompt], responses=[response], action_masks=[[True] * len(response)])


@pytest.mark.parametrize(
    ("prompt", "response", "words"),
    [
        ([], [1], "prompt is empty"),
        ([1, 10], [1], "token 10 at position 1 is outside the model's vocabulary of 10"),
        ([1], [-1], "token -1 at position 1"),
        ([1] * 4, [1] * 3, "7 tokens exceed the engine's longest sequence of 6"),
    ],
)
def test_token_batches(prompt, response, words) -> None:
    with pytest.raises(InvalidInput, match=words) as error:
        LIMITS.check_batch(_batch(prompt, response))
    assert error.value.faults[0].where == "seq"


def test_prefill_draws_one_token_more() -> None:
    longest = _batch([1] * 4, [1] * 2)
    LIMITS.check_batch(longest, room=room("forced_decode"))
    with pytest.raises(InvalidInput, match="6 tokens and 1 to generate"):
        LIMITS.check_batch(longest, room=room("prefill"))

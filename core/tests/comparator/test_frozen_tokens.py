"""Both sides against the frozen token batch: agreement on the wrong tokens is no agreement."""

from __future__ import annotations

import pytest
from attrs import evolve

from xcfg.comparator.compare import compare
from xcfg.comparator.frozen import frozen_tokens
from xcfg.comparator.sampled import compare_sampled
from xcfg.model.sample import TokenBatch
from xcfg.model.status import Status

ROWS = [[-1.0, -2.0, -3.0], [-1.5, -2.5]]


def batch(**changes):
    fields = {
        "ids": ["s0", "s1"],
        "prompts": [[1, 1], [1, 1, 1]],
        "responses": [[10, 11, 12], [10, 11]],
        "action_masks": [[True] * 3, [True] * 2],
    }
    return TokenBatch(**{**fields, **changes})


def both(side, tokens, **changes):
    """Two sides that agree in every bit and name ``tokens`` as what they scored."""
    sides = [side(ROWS, **changes) for _ in range(2)]
    return [evolve(item, identity=evolve(item.identity, token_digest=tokens.digest())) for item in sides]


def test_the_batch_itself_passes_whatever_its_order(contract, side):
    tokens = batch()
    assert compare(*both(side, tokens), contract, frozen=frozen_tokens(tokens))[0].status is Status.PASS
    swapped = TokenBatch(
        ids=["s1", "s0"],
        prompts=[[1, 1, 1], [1, 1]],
        responses=[[10, 11], [10, 11, 12]],
        action_masks=[[True] * 2, [True] * 3],
    )
    assert compare(*both(side, swapped), contract, frozen=frozen_tokens(swapped))[0].status is Status.PASS


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"responses": [[10, 11, 12], [10, 99]]}, "input_ids differs in sequence 's1' at index 4 (response index 1)"),
        ({"prompts": [[1, 7], [1, 1, 1]]}, "input_ids differs in sequence 's0' at index 1 (prompt): the frozen batch"),
        ({"action_masks": [[True] * 3, [True, False]]}, "action_mask differs in sequence 's1' at index 1"),
        ({"prompts": [[1], [1, 1, 1]]}, "prompt_length differs in sequence 's0': the frozen batch 1"),
        ({"ids": ["s0", "s2"]}, "'s1' (2 in all)"),
        ({"weight_version": "8"}, "the tokens were recorded with '8'"),
    ],
)
def test_two_sides_wrong_in_the_same_way_never_pass(contract, side, changes, said):
    tokens = batch(**changes)
    sides = both(side, tokens)
    assert compare(*sides, contract)[0].status is Status.PASS
    result, compared = compare(*sides, contract, frozen=frozen_tokens(tokens))
    assert (result.status, compared, dict(result.metrics)) == (Status.INVALID_IDENTITY, None, {})
    assert said in result.reason and "rollout" in result.reason and "training" in result.reason


def test_an_active_token_that_both_sides_masked_out_is_found(contract, side):
    tokens = batch()
    sides = both(side, tokens, masks=[[True, True, False], [True, True]])
    assert compare(*sides, contract, frozen=frozen_tokens(tokens))[0].status is Status.INVALID_IDENTITY


def test_another_digest_is_another_batch(contract, side):
    result, _ = compare(side(ROWS), side(ROWS), contract, frozen=frozen_tokens(batch()))
    assert result.status is Status.INVALID_IDENTITY and "token_digest" in result.reason


def test_the_production_case_of_other_tokens_is_judged_and_not_an_error(contract, side):
    tokens = batch(responses=[[10, 11, 12], [10, 99]], sampled_logprobs=ROWS)
    result, _ = compare_sampled(*both(side, tokens), tokens, contract, frozen=frozen_tokens(tokens))
    assert result.status is Status.INVALID_IDENTITY

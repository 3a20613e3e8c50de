import pytest
from attrs import evolve

from xcfg.model.sample import TokenBatch
from xcfg.runner.sources import Source, limited_batch

T, F = True, False


def batch(*masks):
    return TokenBatch(
        ids=[f"s{row}" for row in range(len(masks))],
        prompts=[(1,)] * len(masks),
        responses=[(2,) * len(mask) for mask in masks],
        action_masks=masks,
        sampled_logprobs=[(-1.0,) * len(mask) for mask in masks],
    )


@pytest.mark.parametrize(
    ("masks", "limit", "kept"),
    [
        ([(T, T), (T, F), (T,)], 100, 3),
        ([(T, T), (T, F), (T,)], 3, 2),
        ([(T, T), (T, T), (T,)], 3, 1),
        # the first one stays however long it is
        ([(T, T, T), (T,)], 1, 1),
        # without an active token there would be nothing to compare
        ([(F, F), (T, T), (F,), (T,)], 1, 2),
        ([(F, F), (T, T), (F,), (T,)], 2, 3),
        ([(F,), (F,)], 1, 2),
    ],
)
def test_whole_sequences_up_to_the_limit(masks, limit, kept):
    found = limited_batch(batch(*masks), limit)
    assert found.ids == tuple(f"s{row}" for row in range(kept))
    assert found.action_masks == tuple(masks[:kept])
    assert len(found.sampled_logprobs) == kept


@pytest.mark.parametrize(("limit", "prompts", "new"), [(4, 1, 4), (3, 1, 3), (7, 1, 4), (8, 2, 4), (1000, 2, 4)])
def test_prompts_of_which_all_responses_fit(world, limit, prompts, new):
    # two prompts, four new tokens each
    plan = world.plan((world.side("rollout"), world.side("training")), sample=True)
    found = Source.of(evolve(plan, tokens={**plan.tokens, "limit": limit}))
    assert (len(found.prompts), found.sample.max_new_tokens) == (prompts, new)
    assert prompts * new <= limit

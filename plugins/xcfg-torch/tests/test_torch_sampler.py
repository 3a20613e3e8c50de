"""Sampling: seeded by prompt id, and in agreement with teacher forcing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from attrs import evolve

from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.model.experiment import SampleSource
from xcfg.model.scorer import Role
from xcfg.plugin import Prompt, ScorerSpec
from xcfg_torch.sampler import _draw
from xcfg_torch.scorer import TorchScorer
from xcfg_torch.testing.cases import played
from xcfg_torch.testing.tiny_model import MAX_POSITIONS

PROMPTS = (Prompt(id="a", text="hello"), Prompt(id="b", text="a longer prompt"), Prompt(id="c", token_ids=(5, 6, 7)))
SOURCE = SampleSource(prompts="", max_new_tokens=12, ignore_eos=True)


@pytest.fixture(scope="module")
def scorer(checkpoint):
    opened = TorchScorer()
    opened.open(
        ScorerSpec(
            role=Role.ROLLOUT,
            checkpoint=checkpoint,
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine={"dtype": "float32"},
        )
    )
    yield opened
    opened.close()


def test_responses_depend_on_seed_and_id_only(scorer) -> None:
    batch = scorer.sample(PROMPTS, SOURCE)
    turned = scorer.sample(PROMPTS[::-1], SOURCE)
    assert dict(zip(batch.ids, batch.responses, strict=True)) == dict(zip(turned.ids, turned.responses, strict=True))
    assert scorer.sample(PROMPTS, evolve(SOURCE, seed=1)).responses != batch.responses
    assert [len(response) for response in batch.responses] == [12, 12, 12]
    assert batch.prompts[2] == (5, 6, 7)
    assert len(batch.prompts[0]) == len("hello")
    assert batch.active_tokens == 36


def test_reported_logprobs_are_those_of_teacher_forcing(scorer, checkpoint) -> None:
    batch = scorer.sample(PROMPTS, SOURCE)
    scored = played(checkpoint, batch, role="rollout").scored[0].samples.logprobs
    assert batch.sampled_logprobs is not None
    # two float32 passes of different shapes
    np.testing.assert_allclose(scored, np.concatenate(batch.sampled_logprobs), rtol=0, atol=2e-5)


def test_draws_follow_the_distribution() -> None:
    row = torch.tensor([0.5, 0.25, 0.25]).log()
    generator = torch.Generator().manual_seed(0)
    counts = Counter(_draw(row, 0.5, generator) for _ in range(4000))
    # temperature 1/2 squares the probabilities: 4/6, 1/6, 1/6; five standard deviations of a binomial are 0.037
    assert abs(counts[0] / 4000 - 4 / 6) < 0.037
    assert _draw(row, 0.0, generator) == 0


def test_ends_at_the_end_token(scorer) -> None:
    model = scorer.live.model
    batch = scorer.sample(PROMPTS, SOURCE)
    stop = batch.responses[0][4]
    before = model.generation_config.eos_token_id
    model.generation_config.eos_token_id = [stop]
    try:
        stopped = scorer.sample(PROMPTS[:1], evolve(SOURCE, ignore_eos=False))
    finally:
        model.generation_config.eos_token_id = before
    first = batch.responses[0].index(stop)
    assert stopped.responses[0] == batch.responses[0][: first + 1]


@pytest.mark.parametrize("change", [{"top_p": 0.9}, {"top_k": 5}])
def test_truncated_sampling_is_refused(scorer, change) -> None:
    with pytest.raises(UnsupportedError, match="whole vocabulary"):
        scorer.sample(PROMPTS, evolve(SOURCE, **change))


def test_prompts_that_do_not_fit(scorer) -> None:
    with pytest.raises(InvalidInput, match="exceed"):
        scorer.sample([Prompt(id="long", token_ids=(1,) * (MAX_POSITIONS - 11))], SOURCE)
    with pytest.raises(InvalidInput, match="no token"):
        scorer.sample([Prompt(id="empty", text="")], SOURCE)
    with pytest.raises(InvalidInput, match="vocabulary"):
        scorer.sample([Prompt(id="other", token_ids=(256,))], SOURCE)


def test_state_survives_sampling(scorer) -> None:
    before = scorer.state_digest()
    scorer.sample(PROMPTS, SOURCE)
    assert scorer.state_digest() == before

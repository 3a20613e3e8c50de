"""Rows that pass in several runs of columns score what rows that pass whole do, and show how they passed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from attrs import evolve

from xcfg.errors import UnsupportedError
from xcfg.model.capability import Unobservable
from xcfg.model.experiment import SampleSource
from xcfg.model.sample import TokenBatch
from xcfg.model.scorer import Role
from xcfg.plugin import Prompt, ScoreRequest, ScorerSpec
from xcfg_torch.forward_seen import forward_seen
from xcfg_torch.materialize import TorchMaterializer
from xcfg_torch.prefill import chunks
from xcfg_torch.route_fault import route_fault
from xcfg_torch.scorer import TorchScorer
from xcfg_torch.testing.cases import played
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.play import load

FP32_AGAINST_FP64 = 2e-5  # nats; the bound that whole rows are held to
DECODE = {"torch.forward": "cached_decode"}


def _chunked(columns):
    return {"torch.forward": "chunked_prefill", "torch.prefill_chunk": columns}


@pytest.fixture(scope="module")
def oracle(checkpoint, batch):
    return np.concatenate(oracle_logprobs(checkpoint, batch))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    "route", [DECODE, {**DECODE, "torch.prefill_chunk": 5}, _chunked(7), _chunked(1), _chunked(500)]
)
def test_every_route_agrees_with_float64(checkpoint, batch, oracle, side, route) -> None:
    result = played(checkpoint, batch, {**route, "layout.padding_side": side})
    np.testing.assert_allclose(result.scored[0].samples.logprobs, oracle, rtol=0, atol=FP32_AGAINST_FP64)
    for knob, value in {**route, "layout.padding_side": side, "batch.size": 3, "batch.micro_size": 3}.items():
        assert result.observed[knob] == value
    assert result.observed["training.context_parallel_size"] == 1
    assert result.scored[0].rank.cache_mode == "present"
    assert result.states[0] == result.states[1]


def test_a_rollout_is_scored_as_it_decodes(checkpoint, batch, oracle) -> None:
    result = played(checkpoint, batch, {"rollout.scoring_path": "forced_decode"}, role="rollout")
    np.testing.assert_allclose(result.scored[0].samples.logprobs, oracle, rtol=0, atol=FP32_AGAINST_FP64)
    assert result.observed["rollout.scoring_path"] == "forced_decode"
    assert result.observed["rollout.kv_cache_dtype"] == "float32"
    assert result.observed["execution.prefix_cache"] is False
    assert result.observed["rollout.chunked_prefill"] is False


def test_a_rollout_prefills_in_chunks(checkpoint, batch, oracle) -> None:
    knobs = {"rollout.chunked_prefill": True, "torch.rollout_prefill_chunk": 6, "rollout.scoring_path": "prefill"}
    result = played(checkpoint, batch, knobs, role="rollout")
    np.testing.assert_allclose(result.scored[0].samples.logprobs, oracle, rtol=0, atol=FP32_AGAINST_FP64)
    assert {knob: result.observed[knob] for knob in knobs} == knobs


def test_one_row_decoded_gives_the_bits_that_were_sampled(checkpoint) -> None:
    scorer = TorchScorer()
    engine = {"dtype": "bfloat16"}
    scorer.open(
        ScorerSpec(
            role=Role.ROLLOUT, checkpoint=checkpoint, trust_remote_code=False, rank=0, world_size=1, engine=engine
        )
    )
    prompts = (Prompt(id="a", token_ids=(1, 2, 3, 4)), Prompt(id="b", token_ids=(9,)))
    batch = scorer.sample(prompts, SampleSource(prompts="", max_new_tokens=9, ignore_eos=True))
    scorer.close()
    knobs = {"rollout.dtype": "bfloat16", "rollout.scoring_path": "forced_decode", "batch.size": 1}
    logprobs = played(checkpoint, batch, knobs, role="rollout").scored[0].samples.logprobs
    assert batch.sampled_logprobs is not None
    assert logprobs.tolist() == [np.float32(value) for row in batch.sampled_logprobs for value in row]


def test_a_row_leaves_the_batch_when_its_response_ends(checkpoint) -> None:
    batch = TokenBatch(
        ids=["a", "b"], prompts=[[1, 2, 3], [4]], responses=[[5], [6, 7, 8]], action_masks=[[True], [True] * 3]
    )
    result = played(checkpoint, batch, {**DECODE, "batch.size": 2})
    shapes = result.scored[0].rank.facts["forward_shapes"]
    assert [list(shape) for shape in shapes] == [[2, 3], [1, 1], [1, 1]]


def test_columns_of_each_pass() -> None:
    assert chunks(7, 3) == (3, 3, 1)
    assert chunks(7, None) == (7,)
    assert chunks(2, 5) == (2,)


def test_a_pass_that_lost_what_was_kept_is_seen(checkpoint, batch) -> None:
    scorer = TorchScorer()
    spec = ScorerSpec(role=Role.TRAINING, checkpoint=checkpoint, trust_remote_code=False, rank=0, world_size=1)
    scorer.open(spec)
    settings = {"forward": "cached_decode", "batch_size": 3}
    with load("xcfg_kernels.production:Production")().bind(scorer.kernel_request("selected_logprob", {})) as bound:
        scorer.score(batch, ScoreRequest(settings=settings, operators={"selected_logprob": bound}))
    materializer, forwards = TorchMaterializer(), scorer.live.seen.forwards
    assert materializer.read_back("torch.forward", scorer.live) == "cached_decode"
    forwards[1] = evolve(forwards[1], past=0)
    for knob in ("torch.forward", "rollout.scoring_path", "torch.prefill_chunk"):
        assert isinstance(materializer.read_back(knob, scorer.live), Unobservable)
    forwards[0] = evolve(forwards[0], past=4)
    assert materializer.read_back("execution.prefix_cache", scorer.live) is True
    scorer.close()


def test_padding_that_is_yet_to_end_is_on_the_left() -> None:
    ids, mask = torch.zeros((2, 2), dtype=torch.int64), torch.tensor([[0, 0], [1, 1]])
    assert forward_seen(ids, mask, torch.tensor([[0, 0], [0, 1]])).padding == "left"
    assert forward_seen(ids, mask.flip(1), torch.tensor([[0, 0], [0, 1]])).padding == "left"
    assert forward_seen(ids, torch.tensor([[1, 0], [1, 1]]), torch.tensor([[0, 0], [0, 1]])).padding == "right"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"forward": "chunked_prefill"}, "needs torch.prefill_chunk"),
        ({"forward": "whole", "prefill_chunk": 4}, "whole takes one"),
        ({"forward": "cached_decode", "packing": True}, "pass whole"),
        ({"scoring_path": "prefill", "prefill_chunk": 4, "packing": True}, "pass whole"),
        ({"scoring_path": "forced_decode", "position_ids": "padded"}, "counts from the first token"),
    ],
)
def test_settings_that_contradict_each_other(checkpoint, batch, settings, words) -> None:
    assert words in route_fault(settings)
    scorer = TorchScorer()
    scorer.open(ScorerSpec(role=Role.TRAINING, checkpoint=checkpoint, trust_remote_code=False, rank=0, world_size=1))
    with pytest.raises(UnsupportedError, match=words):
        scorer.score(batch, ScoreRequest(settings=settings, operators={"selected_logprob": lambda *rows: rows}))
    scorer.close()


@pytest.mark.parametrize(
    "settings",
    [{}, {"forward": "whole"}, {"scoring_path": "prefill", "prefill_chunk": 4}, {"packing": True, "forward": "whole"}],
)
def test_settings_that_fit(settings) -> None:
    assert route_fault(settings) == ""

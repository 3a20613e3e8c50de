from __future__ import annotations

import multiprocessing
import signal

import numpy as np
import pytest
from attrs import evolve

from xcfg.errors import InvalidInput
from xcfg.model.experiment import SampleSource
from xcfg.model.scorer import Role
from xcfg.plugin.protocols import Prompt, ScoreRequest, ScorerSpec
from xcfg.testing import failing, fakes, mutants
from xcfg.testing.batches import toy_batch
from xcfg.testing.checkpoints import write_checkpoint
from xcfg.testing.descriptors import MATERIALIZERS, SCORERS
from xcfg.testing.distributions import write_distribution

BATCH = toy_batch(16)


@pytest.fixture
def opened(tmp_path):
    def open_scorer(cls=fakes.FakeScorer, role=Role.ROLLOUT, folder="a", seed=0, **engine):
        checkpoint = write_checkpoint(tmp_path / folder, seed=seed)
        scorer = cls()
        scorer.open(
            ScorerSpec(role=role, checkpoint=checkpoint, trust_remote_code=False, rank=0, world_size=1, engine=engine)
        )
        return scorer

    return open_scorer


def logprobs(scorer, **settings):
    return scorer.score(BATCH, ScoreRequest(settings=settings)).samples.logprobs


def test_the_roles_agree_bitwise_under_equal_settings(opened):
    assert np.array_equal(logprobs(opened(role=Role.ROLLOUT)), logprobs(opened(role=Role.TRAINING)))


def test_another_checkpoint_is_another_model(opened):
    first, second = opened(), opened(folder="b", seed=1)
    assert first.identity().checkpoint_digest != second.identity().checkpoint_digest
    assert np.abs(logprobs(first) - logprobs(second)).max() > 1


@pytest.mark.parametrize(
    ("role", "knob", "value"),
    [
        (Role.ROLLOUT, "rollout.dtype", "float32"),
        (Role.ROLLOUT, "rollout.tensor_parallel_size", 2),
        (Role.ROLLOUT, "rollout.kv_cache_dtype", "float8_e5m2"),
        (Role.ROLLOUT, "rollout.attention_backend", "eager"),
        (Role.TRAINING, "training.compute_dtype", "float16"),
        (Role.TRAINING, "training.output_dtype", "float8_e5m2"),
        (Role.TRAINING, "training.attention_backend", "eager"),
    ],
)
def test_knobs_of_the_forward_pass_move_the_logprobs(opened, role, knob, value):
    changed = np.abs(logprobs(opened(role=role, **{knob: value})) - logprobs(opened(role=role)))
    assert 0 < changed.max() < 2


@pytest.mark.parametrize("knob", ["rollout.enforce_eager", "execution.prefix_cache"])
def test_other_knobs_do_not(opened, knob):
    assert np.array_equal(logprobs(opened(**{knob: True})), logprobs(opened(**{knob: False})))


def test_temperature_counts_in_processed_mode_only(opened):
    raw, processed = opened(), opened(**{"sampling.logprobs_mode": "processed_logprobs"})
    assert np.array_equal(logprobs(raw, **{"sampling.temperature": 0.5}), logprobs(raw))
    assert np.abs(logprobs(processed, **{"sampling.temperature": 0.5}) - logprobs(raw)).max() > 0.1
    semantics = processed.score(BATCH, ScoreRequest(settings={"sampling.temperature": 0.5})).semantics
    assert (semantics.mode, semantics.temperature, semantics.vocab_size) == ("processed", 0.5, 64)


def test_sampling_stops_at_the_end_token_and_obeys_its_support(tmp_path, opened):
    scorer = opened()
    greedy = scorer.sample([Prompt(id="p", text="hello")], SampleSource(prompts="", max_new_tokens=9, temperature=0.0))
    narrow = scorer.sample([Prompt(id="p", text="hello")], SampleSource(prompts="", max_new_tokens=9, top_k=1))
    tiny = scorer.sample([Prompt(id="p", text="hello")], SampleSource(prompts="", max_new_tokens=9, top_p=1e-9))
    assert greedy.responses == narrow.responses == tiny.responses
    stop = greedy.responses[0][2]
    scorer._eos = [stop]
    stopped = scorer.sample([Prompt(id="p", text="hello")], SampleSource(prompts="", max_new_tokens=9, temperature=0.0))
    length = greedy.responses[0].index(stop) + 1
    assert stopped.responses[0] == greedy.responses[0][:length]


@pytest.mark.parametrize("config", ["{}", '{"vocab_size": 0}', '{"vocab_size": true}', "[]", "not json"])
def test_a_configuration_without_vocabulary_is_refused(tmp_path, config):
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    spec = ScorerSpec(role=Role.ROLLOUT, checkpoint=tmp_path, trust_remote_code=False, rank=0, world_size=1)
    with pytest.raises(InvalidInput, match=r"config\.json"):
        fakes.FakeScorer().open(spec)


def test_a_token_outside_the_vocabulary_is_refused(opened):
    with pytest.raises(InvalidInput, match="sequence-0: token 64"):
        opened().score(evolve(BATCH, responses=[[64] * len(row) for row in BATCH.responses]), ScoreRequest())


@pytest.mark.parametrize(
    ("cls", "text"), [(failing.OpenCrash, "cannot be built"), (failing.ScoreCrash, "cannot score")]
)
def test_crashes_raise(opened, cls, text):
    with pytest.raises(RuntimeError, match=text):
        logprobs(opened(cls))


def _end_of(scorer, seconds):
    process = multiprocessing.get_context("fork").Process(target=lambda: logprobs(scorer))
    process.start()
    process.join(seconds)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    return code


def test_killed_dies_by_sigkill(opened):
    assert _end_of(opened(failing.Killed), 30) == -signal.SIGKILL


def test_hang_does_not_return(opened):
    assert _end_of(opened(failing.Hang), 0.3) is None


def test_not_a_number_is_in_an_active_place(opened):
    samples = opened(failing.NotANumber).score(BATCH, ScoreRequest()).samples
    assert np.isnan(samples.logprobs[samples.action_mask]).sum() == 1


def test_a_dropped_rank_lacks_every_other_sequence(opened):
    scored = opened(failing.DroppedRank).score(BATCH, ScoreRequest())
    assert scored.samples.sequence.tolist() == [0, 2, 4]
    assert (scored.rank.rank, scored.rank.world_size) == (0, 2)
    whole = opened().score(BATCH, ScoreRequest()).samples
    for row, sequence in enumerate((0, 2, 4)):
        assert np.array_equal(
            scored.samples.logprobs[scored.samples.response_slice(row)], whole.logprobs[whole.response_slice(sequence)]
        )


def test_a_prompt_token_in_the_mask_is_scored_as_one(opened):
    samples = opened(failing.PromptInMask).score(BATCH, ScoreRequest()).samples
    right = opened().score(BATCH, ScoreRequest()).samples
    assert samples.prompt_length.tolist() == [2, 1, 5, 1, 3]
    assert samples.response_length.tolist() == [6, 4, 2, 8, 4]
    assert samples.action_mask.sum() == right.action_mask.sum() + 4  # one prompt has a single token and keeps it
    assert np.array_equal(samples.input_ids, right.input_ids)
    assert np.array_equal(samples.logprobs[1:6], right.logprobs[:5])


def test_state_changes_while_scoring(opened):
    scorer = opened(failing.StateChanged)
    before = scorer.state_digest()
    logprobs(scorer)
    assert scorer.state_digest() != before


def test_a_fallback_shows_in_the_read_back(opened):
    scorer = opened(failing.Fallback, **{"rollout.dtype": "bfloat16"})
    assert scorer.live.values["rollout.dtype"] == "float32"
    assert np.array_equal(logprobs(scorer), logprobs(opened(**{"rollout.dtype": "float32"})))


def test_unobserved_hides_its_dtype_alone(opened):
    scorer = opened(failing.Unobserved)
    assert "rollout.dtype" not in scorer.live.values
    assert scorer.live.values["rollout.kv_cache_dtype"] == "bfloat16"


def test_off_by_one_moves_the_logprobs_within_their_rows(opened):
    right, wrong = logprobs(opened()), logprobs(opened(mutants.OffByOne))
    assert np.array_equal(np.roll(right[:5], -1), wrong[:5])  # the first row has five response tokens


def test_every_fake_is_marked_and_loadable():
    for descriptor in SCORERS:
        assert descriptor.fake
        module, _, name = descriptor.target.partition(":")
        assert hasattr(__import__(module, fromlist=[name]), name)
    assert {item.scorer for item in MATERIALIZERS} == {item.id for item in SCORERS}


def test_a_written_distribution_looks_installed(tmp_path):
    from importlib import metadata

    module = write_distribution(tmp_path, "xcfg-mine", "", version="4.5", requires=["xcfg>=0.1"])
    (found,) = metadata.distributions(path=[str(tmp_path)])
    assert (found.name, found.version, found.requires) == ("xcfg-mine", "4.5", ["xcfg>=0.1"])
    assert [(entry.name, entry.value, entry.group) for entry in found.entry_points] == [("mine", module, "xcfg")]

"""The conformance kit on a real engine, against a float64 forward pass of the same files.

The engine takes every value but one: vLLM on a CPU ignores the attention backend in silence, and read-back says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import psutil
import pytest

from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.model.capability import Supported
from xcfg.model.sample import TokenBatch
from xcfg.model.scorer import Role
from xcfg.plugin import Prompt, ScoreRequest, ScorerSpec, Settings
from xcfg.testing.scorer_tests import ScorerTests, by_sequence
from xcfg_vllm.environment import SAMPLE_BATCH, process_environment
from xcfg_vllm.materialize import VllmMaterializer
from xcfg_vllm.scorer import VllmScorer

pytestmark = pytest.mark.engine
pytest.importorskip("vllm", reason="vllm is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

VOCABULARY = 256
MAX_POSITIONS = 256
KNOBS = {
    "rollout.tensor_parallel_size": 1,
    "rollout.dtype": "float32",
    "rollout.kv_cache_dtype": None,
    "rollout.attention_backend": "FLASH_ATTN",
    "rollout.quantization": None,
    "rollout.enforce_eager": True,
    "rollout.chunked_prefill": False,
    "execution.max_num_seqs": 12,
    "execution.compile_mode": "NONE",
    "execution.collective": "gloo" if torch.cuda.device_count() == 0 else None,
    "execution.prefix_cache": True,
    "execution.threads": 1,
    "sampling.logprobs_mode": "processed_logprobs",
    "vllm.block_size": 32,
}


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[set[psutil.Process]]:
    """The variables vLLM needs, and the processes there were before."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in process_environment(ranks=1, threads=1).items():
            patch.setenv(name, value)
        patch.setenv(SAMPLE_BATCH, "2")
        yield _children()


def _children() -> set[psutil.Process]:
    """Without Python's own helper, which ends with the process that started it, and without what has ended."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "resource_tracker" not in " ".join(process.cmdline()):
                found.add(process)
    return found


class TestVllmScorer(ScorerTests):
    atol = 2e-5
    vocabulary = VOCABULARY

    @pytest.fixture(autouse=True)
    def _tiny(self, checkpoint):
        self.checkpoint = checkpoint

    def make_scorer(self):
        return VllmScorer()

    def spec(self, folder):
        settings = Settings()
        for knob, value in KNOBS.items():
            assert VllmMaterializer().probe(knob, value, {}) == Supported()
            VllmMaterializer().apply(knob, value, settings)
        return ScorerSpec(
            role=Role.ROLLOUT,
            checkpoint=self.checkpoint,
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine=settings.engine,
        )

    def oracle(self, batch, spec, temperature=1.0):
        return _oracle(spec.checkpoint, batch, temperature)

    def request(self, scorer):
        return _request(**{"batch.size": 3})

    def test_values_are_observed_and_the_ignored_one_is_told(self, opened, scored) -> None:
        live = opened[0].live
        observed = {knob: VllmMaterializer().read_back(knob, live) for knob in KNOBS}
        if not _on_cpu():
            pytest.skip("the attention backend is ignored on a CPU only")
        assert observed == {
            **KNOBS,
            "rollout.kv_cache_dtype": "float32",
            "rollout.quantization": "none",
            "rollout.attention_backend": "CPU_ATTN",
        }

    def test_processed_logprobs_are_those_of_the_temperature(self, opened) -> None:
        scorer, spec = opened
        batch = self.batch()
        scored = scorer.score(batch, _request(**{"batch.size": 2, "sampling.temperature": 0.7}))
        expected = self.oracle(batch, spec, temperature=0.7)
        for sequence, row in by_sequence(scored.samples).items():
            np.testing.assert_allclose(row, expected[sequence], rtol=0, atol=self.atol)
        assert (scored.semantics.mode, scored.semantics.temperature) == ("processed", 0.7)
        assert VllmMaterializer().read_back("sampling.temperature", scorer.live) == 0.7
        assert VllmMaterializer().read_back("batch.size", scorer.live) == 2

    def test_processed_logprobs_are_those_of_the_tokens_that_are_kept(self, opened) -> None:
        scorer, spec = opened
        batch = self.batch()
        cut = {"sampling.temperature": 0.7, "sampling.top_p": 0.8, "sampling.top_k": 40}
        scored = scorer.score(batch, _request(**{"batch.size": 2, **cut}))
        rows = by_sequence(scored.samples)
        for sequence, expected in enumerate(_oracle(spec.checkpoint, batch, 0.7, top_p=0.8, top_k=40)):
            assert np.isneginf(rows[sequence]).tolist() == np.isneginf(expected).tolist()
            kept = np.isfinite(expected)
            np.testing.assert_allclose(rows[sequence][kept], expected[kept], rtol=0, atol=self.atol)
        found = scored.semantics
        assert (found.mode, found.temperature, found.top_p, found.top_k) == ("processed", 0.7, 0.8, 40)
        assert {knob: VllmMaterializer().read_back(knob, scorer.live) for knob in cut} == cut

    def test_processed_logprobs_are_those_that_min_p_keeps(self, opened) -> None:
        scorer, spec = opened
        batch = self.batch()
        cut = {"sampling.temperature": 0.7, "vllm.min_p": 0.02}
        scored = scorer.score(batch, _request(**{"batch.size": 2, **cut}))
        rows = by_sequence(scored.samples)
        cut_away = 0
        for sequence, expected in enumerate(_oracle(spec.checkpoint, batch, 0.7, min_p=0.02)):
            assert np.isneginf(rows[sequence]).tolist() == np.isneginf(expected).tolist()
            kept = np.isfinite(expected)
            cut_away += int((~kept).sum())
            np.testing.assert_allclose(rows[sequence][kept], expected[kept], rtol=0, atol=self.atol)
        assert cut_away
        assert scored.semantics.min_p == 0.02
        assert {knob: VllmMaterializer().read_back(knob, scorer.live) for knob in cut} == cut

    @pytest.mark.parametrize("state", ["cold", "warm"])
    def test_a_prompt_is_read_from_the_cache_where_it_is_warm(self, opened, state) -> None:
        scorer = opened[0]
        prompts = [[(place * 7 + row) % 200 + 1 for place in range(100)] for row in range(3)]
        batch = TokenBatch(ids=["a", "b", "c"], prompts=prompts, responses=[[5, 6]] * 3, action_masks=[[True] * 2] * 3)
        scored = scorer.score(batch, _request(**{"batch.size": 3, "vllm.prefix_cache_state": state}))
        assert scored.rank.facts["cached_tokens"] == (3 * 96 if state == "warm" else 0)
        assert VllmMaterializer().read_back("vllm.prefix_cache_state", scorer.live) == state

    def test_cached_prompts_are_read_and_change_no_more_than_rounding(self, opened) -> None:
        scorer, spec = opened
        prompts = [[(place * 7 + row) % 200 + 1 for place in range(100)] for row in range(3)]
        batch = TokenBatch(
            ids=["a", "b", "c"], prompts=prompts, responses=[[5, 6, 7, 8]] * 3, action_masks=[[True] * 4] * 3
        )
        scored = scorer.score(batch, self.request(scorer))
        # prompts of 100 tokens hold three whole blocks of 32
        assert scored.rank.facts["cached_tokens"] == 3 * 96
        for sequence, row in by_sequence(scored.samples).items():
            np.testing.assert_allclose(row, self.oracle(batch, spec)[sequence], rtol=0, atol=self.atol)

    def test_prefill_is_unsupported_while_prompts_are_cached(self, opened, scored) -> None:
        with pytest.raises(UnsupportedError, match="prefix cache"):
            opened[0].score(self.batch(), _request(**{"rollout.scoring_path": "prefill"}))
        again = self._score(opened, self.batch()).samples
        assert again.logprobs.tobytes() == scored.samples.logprobs.tobytes()

    def test_the_longest_sequence_is_scored_and_a_longer_one_refused(self, opened) -> None:
        longest = _one_sequence([1] * (MAX_POSITIONS - 3), [2, 3, 4])
        (row,) = by_sequence(self._score(opened, longest).samples).values()
        np.testing.assert_allclose(row, self.oracle(longest, opened[1])[0], rtol=0, atol=self.atol)
        with pytest.raises(InvalidInput, match=f"longest sequence of {MAX_POSITIONS}"):
            self._score(opened, _one_sequence([1] * (MAX_POSITIONS - 2), [2, 3, 4]))

    def test_a_token_of_another_model_is_refused(self, opened) -> None:
        with pytest.raises(InvalidInput, match="outside the model's vocabulary of 256"):
            self._score(opened, _one_sequence([1, VOCABULARY], [2]))
        with pytest.raises(InvalidInput, match="outside the model's vocabulary"):
            opened[0].sample([Prompt(id="other", token_ids=(VOCABULARY,))], self.sample_source())

    def test_an_empty_response_among_others_is_an_empty_row(self, opened, scored) -> None:
        batch = self.batch()
        with_empty = TokenBatch(
            ids=["empty", *batch.ids],
            prompts=[[9], *batch.prompts],
            responses=[[], *batch.responses],
            action_masks=[[], *batch.action_masks],
        )
        rows = by_sequence(self._score(opened, with_empty).samples)
        assert rows[0].tolist() == []
        assert len(rows) == len(batch.ids) + 1
        with pytest.raises(InvalidInput, match="no sequence has a response token"):
            self._score(opened, _one_sequence([1], []))


def test_no_process_is_left(environment) -> None:
    assert not _children() - environment


def _request(**knobs) -> ScoreRequest:
    settings = Settings()
    for knob, value in knobs.items():
        VllmMaterializer().apply(knob, value, settings)
    return ScoreRequest(settings=settings.request)


def _one_sequence(prompt, response) -> TokenBatch:
    return TokenBatch(ids=["one"], prompts=[prompt], responses=[response], action_masks=[[True] * len(response)])


def _on_cpu() -> bool:
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu())


def _oracle(checkpoint, batch, temperature, *, top_p=1.0, top_k=VOCABULARY, min_p=0.0) -> list[np.ndarray]:
    """Float64 forward passes of single, unpadded sequences; temperature, cuts and log-softmax by hand.

    Tokens less likely than ``min_p`` of the likeliest go first. Of the ``top_k`` likeliest tokens those are kept before
    which, likeliest first, less than ``top_p`` was gathered.
    """
    from transformers import Qwen3ForCausalLM

    model = Qwen3ForCausalLM.from_pretrained(checkpoint, dtype=torch.float64, attn_implementation="eager").eval()
    found = []
    for prompt, response in zip(batch.prompts, batch.responses, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *response]])).logits[0].numpy() / temperature
        rows = logits[len(prompt) - 1 : len(prompt) - 1 + len(response)]
        for row in rows:
            row[row < row.max() + (np.log(min_p) if min_p else -np.inf)] = -np.inf
            order = row.argsort()[::-1]
            row[order[top_k:]] = -np.inf
            gathered = np.exp(row[order] - row.max()).cumsum() / np.exp(row - row.max()).sum()
            row[order[1:][gathered[:-1] >= top_p]] = -np.inf
        top = rows.max(axis=-1)
        normaliser = top + np.log(np.exp(rows - top[:, None]).sum(axis=-1))
        found.append(rows[np.arange(len(response)), list(response)] - normaliser)
    return found

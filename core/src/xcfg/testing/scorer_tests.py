"""The conformance checks of a scorer that runs on one rank."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

import numpy as np
import pytest

from xcfg.errors import UnsupportedError, XcfgError
from xcfg.model.experiment import SampleSource
from xcfg.model.sample import Samples, TokenBatch
from xcfg.plugin.checkpoint import digest_checkpoint
from xcfg.plugin.protocols import (
    HostedOperator,
    OperatorHost,
    Prompt,
    Sampler,
    Scored,
    Scorer,
    ScoreRequest,
    ScorerSpec,
)
from xcfg.testing.backends import PoisonedBackend, poisoned_selected_logprob
from xcfg.testing.batches import reordered, toy_batch, with_masks

Opened = tuple[Scorer, ScorerSpec]

_OPENED = pytest.StashKey[Opened]()
_SCORED = pytest.StashKey[Scored]()
_SHIFTS = (-1, 0, 1)
_POISON = "xcfg.testing.backends:PoisonedBackend"


class ScorerTests:
    """Subclass, set the attributes and methods, and pytest checks the scorer.

    ``atol``: the absolute difference (nats) allowed between the scorer and the oracle, and between two orders of the
    same sequences. ``vocabulary``: a number of token ids the checkpoint knows. The engine is built once a class.

    ``oracle`` must be independent of the scorer: another implementation, or values worked out by hand.
    """

    atol: ClassVar[float]
    vocabulary: ClassVar[int] = 16

    def make_scorer(self) -> Scorer:
        """A new scorer that is not open."""
        raise NotImplementedError

    def spec(self, folder: Any) -> ScorerSpec:
        """How to open it; ``folder`` is a temporary directory in which a checkpoint may be made."""
        raise NotImplementedError

    def oracle(self, batch: TokenBatch, spec: ScorerSpec) -> Sequence[np.ndarray]:
        """For each sequence the float64 logprobs (nats) of all its response tokens, active or not."""
        raise NotImplementedError

    def request(self, scorer: Scorer) -> ScoreRequest:
        """Request-time settings and operators the scorer needs."""
        return ScoreRequest()

    def batch(self) -> TokenBatch:
        """The tokens to score."""
        return toy_batch(self.vocabulary)

    def prompts(self) -> Sequence[Prompt]:
        """Prompts to sample from, where the scorer can."""
        return [Prompt(id="a", token_ids=(1, 2, 3)), Prompt(id="b", token_ids=(4,))]

    def sample_source(self) -> SampleSource:
        """How to sample; the logprobs must be those the request's settings ask for."""
        return SampleSource(prompts="", max_new_tokens=6, ignore_eos=True)

    @pytest.fixture
    def opened(self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Opened:
        """The scorer under test, open, with its spec: one for the whole class, closed after its last test."""
        owner = request.node.getparent(pytest.Class)
        if _OPENED not in owner.stash:
            spec = self.spec(tmp_path_factory.mktemp("checkpoint"))
            scorer = self.make_scorer()
            owner.addfinalizer(lambda: _close_twice(scorer))
            scorer.open(spec)
            owner.stash[_OPENED] = (scorer, spec)
        opened: Opened = owner.stash[_OPENED]
        return opened

    @pytest.fixture
    def scored(self, opened: Opened, request: pytest.FixtureRequest) -> Scored:
        """The batch scored once a class."""
        owner = request.node.getparent(pytest.Class)
        if _SCORED not in owner.stash:
            owner.stash[_SCORED] = self._score(opened, self.batch())
        scored: Scored = owner.stash[_SCORED]
        return scored

    def test_is_a_scorer(self, opened: Opened) -> None:
        """All methods are there."""
        assert isinstance(opened[0], Scorer)

    def test_identity_is_the_checkpoints(self, opened: Opened) -> None:
        """Digests of the files, and no optimizer step taken."""
        scorer, spec = opened
        expected = digest_checkpoint(spec.checkpoint)
        identity = scorer.identity()
        assert (identity.checkpoint_digest, identity.tokenizer_digest) == (expected.weights, expected.tokenizer)
        assert identity.optimizer_steps == 0

    def test_every_sequence_comes_back_once(self, scored: Scored) -> None:
        """None missing, none twice, whatever the batch size."""
        assert sorted(scored.samples.sequence.tolist()) == list(range(len(self.batch().ids)))

    def test_tokens_masks_and_positions_are_the_batchs(self, scored: Scored) -> None:
        """Padding is removed and nothing is shifted."""
        batch = self.batch()
        for row, sequence in enumerate(scored.samples.sequence.tolist()):
            prompt, response = batch.prompts[sequence], batch.responses[sequence]
            tokens = scored.samples.input_slice(row)
            assert scored.samples.prompt_length[row] == len(prompt)
            assert scored.samples.input_ids[tokens].tolist() == [*prompt, *response]
            assert scored.samples.position_ids[tokens].tolist() == list(range(len(prompt) + len(response)))
            mask = scored.samples.action_mask[scored.samples.response_slice(row)]
            assert tuple(mask.tolist()) == batch.action_masks[sequence]

    def test_logprobs_agree_with_the_oracle(self, opened: Opened, scored: Scored) -> None:
        """Within ``atol`` at every response token."""
        expected = self.oracle(self.batch(), opened[1])
        for sequence, row in by_sequence(scored.samples).items():
            np.testing.assert_allclose(row, expected[sequence], rtol=0, atol=self.atol, err_msg=f"sequence {sequence}")

    def test_labels_are_not_shifted(self, opened: Opened, scored: Scored) -> None:
        """The off-by-one detector: the oracle fits best where it stands, however loose ``atol`` is."""
        expected = self.oracle(self.batch(), opened[1])
        rows = by_sequence(scored.samples)
        errors = {shift: _shifted_error(rows, expected, shift) for shift in _SHIFTS}
        best = min(errors, key=lambda shift: (errors[shift], abs(shift)))
        assert best == 0, f"the logprobs fit the oracle shifted by {best:+d}: off by one ({errors})"

    def test_masks_change_no_logprob(self, opened: Opened, scored: Scored) -> None:
        """A mask says which tokens count and not what they are."""
        batch = self.batch()
        inverted = with_masks(batch, [[not flag for flag in mask] for mask in batch.action_masks])
        other = self._score(opened, inverted).samples
        assert np.array_equal(other.action_mask, ~scored.samples.action_mask)
        assert other.logprobs.tobytes() == scored.samples.logprobs.tobytes()

    def test_scoring_again_gives_the_same_bits(self, opened: Opened, scored: Scored) -> None:
        """Nothing is left behind by the first call."""
        again = self._score(opened, self.batch()).samples
        for name, array in scored.samples.arrays().items():
            assert again.arrays()[name].tobytes() == array.tobytes(), name

    def test_order_of_sequences_does_not_matter(self, opened: Opened, scored: Scored) -> None:
        """Each sequence keeps its logprobs when the batch is turned round."""
        batch = self.batch()
        order = list(range(len(batch.ids)))[::-1]
        rows, turned = by_sequence(scored.samples), by_sequence(self._score(opened, reordered(batch, order)).samples)
        for place, sequence in enumerate(order):
            np.testing.assert_allclose(turned[place], rows[sequence], rtol=0, atol=self.atol)

    def test_state_is_unchanged(self, opened: Opened) -> None:
        """The digest of the model's state is the same before and after scoring."""
        before = opened[0].state_digest()
        self._score(opened, self.batch())
        assert before and opened[0].state_digest() == before

    def test_one_token_responses(self, opened: Opened) -> None:
        """The shortest thing there is to score, alone in its batch."""
        batch = TokenBatch(ids=["one"], prompts=[[1]], responses=[[2]], action_masks=[[True]])
        rows = by_sequence(self._score(opened, batch).samples)
        np.testing.assert_allclose(rows[0], self.oracle(batch, opened[1])[0], rtol=0, atol=self.atol)

    def test_an_empty_prompt_is_refused(self, opened: Opened) -> None:
        """Nothing scores its first response token; the error names the sequence, and the scorer lives on."""
        batch = TokenBatch(ids=["no-prompt"], prompts=[[]], responses=[[1, 2]], action_masks=[[True, True]])
        with pytest.raises(XcfgError, match="no-prompt"):
            self._score(opened, batch)
        self._score(opened, self.batch())

    def test_nan_is_not_swallowed(self, opened: Opened) -> None:
        """A NaN from the logprob operator arrives as NaN, for scorers that let a backend take over."""
        scorer = opened[0]
        asked = scorer.kernel_request("selected_logprob", {})
        if asked is None:
            pytest.skip("the scorer lets no backend take over selected_logprob")
        with ExitStack() as stack:
            operators = {"selected_logprob": poisoned_selected_logprob}
            if isinstance(scorer, OperatorHost):
                poison = HostedOperator(backend=PoisonedBackend.id, target=_POISON, request=asked)
                try:
                    told = stack.enter_context(scorer.host(poison))
                except UnsupportedError as reason:
                    pytest.skip(str(reason))
                assert told() is None
                operators = {}
            request = ScoreRequest(settings=self.request(scorer).settings, operators=operators)
            assert np.isnan(scorer.score(self.batch(), request).samples.logprobs).all()
            if isinstance(scorer, OperatorHost):
                found = told()
                assert found is not None and found.backend == PoisonedBackend.id
        assert np.isfinite(self._score(opened, self.batch()).samples.logprobs).all()

    def test_says_what_the_numbers_mean(self, opened: Opened, scored: Scored) -> None:
        """Normaliser, rank and compute dtype are stated, never left to be guessed."""
        assert scored.semantics.vocab_size >= self.vocabulary
        assert (scored.rank.rank, scored.rank.world_size) == (opened[1].rank, opened[1].world_size)
        assert scored.rank.compute_dtype

    def test_samples_are_reproduced_by_scoring(self, opened: Opened) -> None:
        """Sampling is repeatable by its seed, and scoring gives the logprobs reported while sampling."""
        scorer = opened[0]
        if not isinstance(scorer, Sampler):
            pytest.skip("the scorer does not sample")
        batch = scorer.sample(self.prompts(), self.sample_source())
        assert batch.digest() == scorer.sample(self.prompts(), self.sample_source()).digest()
        assert batch.ids == tuple(prompt.id for prompt in self.prompts())
        assert batch.sampled_logprobs is not None
        for sequence, row in by_sequence(self._score(opened, batch).samples).items():
            np.testing.assert_allclose(row, batch.sampled_logprobs[sequence], rtol=0, atol=self.atol)

    def _score(self, opened: Opened, batch: TokenBatch) -> Scored:
        return opened[0].score(batch, self.request(opened[0]))


def _close_twice(scorer: Scorer) -> None:
    """As the host does after a failure: closing again must be harmless."""
    scorer.close()
    scorer.close()


def by_sequence(samples: Samples) -> dict[int, np.ndarray]:
    """The logprobs of each sequence's row in float64."""
    return {
        int(sequence): samples.logprobs[samples.response_slice(row)].astype(np.float64)
        for row, sequence in enumerate(samples.sequence)
    }


def _shifted_error(rows: dict[int, np.ndarray], expected: Sequence[np.ndarray], shift: int) -> float:
    """Mean absolute error (nats) when place t of a row is held against place t + shift of the oracle."""
    gaps = []
    for sequence, row in rows.items():
        places = [place for place in range(len(row)) if 0 <= place + shift < len(row)]
        gaps += [abs(float(row[place]) - float(expected[sequence][place + shift])) for place in places]
    return float(np.mean(gaps))

"""Wrong scorers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve

from xcfg.model.experiment import SampleSource
from xcfg.model.json import Json
from xcfg.model.kernel import KernelRequest
from xcfg.model.sample import Samples, TokenBatch
from xcfg.plugin.protocols import Prompt, Scored, ScoreRequest, ScorerIdentity, ScorerSpec
from xcfg.testing.fakes import FakeScorer
from xcfg.testing.reshape import keep_rows


class ScorerMutant:
    """A scorer that passes everything on to ``inner``; a subclass spoils one thing."""

    def __init__(self, inner: Any = None) -> None:
        """Wrap ``inner``, by default the fake scorer."""
        self.inner: Any = inner if inner is not None else FakeScorer()

    @property
    def live(self) -> Any:
        """The live handle of the correct scorer."""
        return self.inner.live

    def open(self, spec: ScorerSpec) -> None:
        """Open the correct scorer."""
        self.inner.open(spec)

    def identity(self) -> ScorerIdentity:
        """As the correct one."""
        identity: ScorerIdentity = self.inner.identity()
        return identity

    def kernel_request(self, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
        """As the correct one."""
        request: KernelRequest | None = self.inner.kernel_request(operator, options)
        return request

    def sample(self, prompts: Sequence[Prompt], source: SampleSource) -> TokenBatch:
        """As the correct one; spoilt are only scores."""
        batch: TokenBatch = self.inner.sample(prompts, source)
        return batch

    def state_digest(self) -> str:
        """As the correct one."""
        return str(self.inner.state_digest())

    def close(self) -> None:
        """Close the correct scorer."""
        self.inner.close()

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Score correctly, then spoil the samples."""
        scored: Scored = self.inner.score(batch, request)
        return evolve(scored, samples=self.spoil(scored.samples))

    def spoil(self, samples: Samples) -> Samples:
        """The samples as they are."""
        return samples


class OffByOne(ScorerMutant):
    """The logprob of each response token stands one place too early."""

    def spoil(self, samples: Samples) -> Samples:
        """Rotate every row's logprobs by one."""
        logprobs = samples.logprobs.copy()
        for row in range(samples.rows):
            logprobs[samples.response_slice(row)] = np.roll(samples.logprobs[samples.response_slice(row)], -1)
        return evolve(samples, logprobs=logprobs)


class MaskIgnored(ScorerMutant):
    """Every response token counts as active."""

    def spoil(self, samples: Samples) -> Samples:
        """Fill the mask."""
        return evolve(samples, action_mask=np.ones_like(samples.action_mask))


class RowsDropped(ScorerMutant):
    """The last row is missing, as when one rank's shard is not gathered."""

    def spoil(self, samples: Samples) -> Samples:
        """Keep all rows but one."""
        return keep_rows(samples, range(samples.rows - 1))


class NanSwallowed(ScorerMutant):
    """NaN becomes 0.0, which reads as probability 1."""

    def spoil(self, samples: Samples) -> Samples:
        """Replace what is not a number."""
        return evolve(samples, logprobs=np.nan_to_num(samples.logprobs, nan=0.0))


class StateMutated(ScorerMutant):
    """The state after each scoring differs from the state before, as after an optimizer step."""

    _steps = 0

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Score and take a step."""
        self._steps += 1
        return super().score(batch, request)

    def state_digest(self) -> str:
        """Another digest after each step."""
        return f"{self.inner.state_digest()[:-4]}{self._steps:04x}"


class PaddingMixedUp(ScorerMutant):
    """Positions are counted from the padding on the left and not from the first token."""

    def spoil(self, samples: Samples) -> Samples:
        """Move every row's positions by the padding that its batch would have."""
        longest = int((samples.prompt_length + samples.response_length).max())
        positions = samples.position_ids.copy()
        for row in range(samples.rows):
            tokens = samples.input_slice(row)
            positions[tokens] += longest - (tokens.stop - tokens.start)
        return evolve(samples, position_ids=positions)


class StaleCache(ScorerMutant):
    """What was scored under the same names before is given again, whatever the tokens and masks are now."""

    def __init__(self, inner: Any = None) -> None:
        """Wrap ``inner``; the cache is empty."""
        super().__init__(inner)
        self._cache: dict[tuple[str, ...], Scored] = {}

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Score what was not seen before."""
        name = tuple(sorted(batch.ids))
        if name not in self._cache:
            self._cache[name] = super().score(batch, request)
        return self._cache[name]


class OrderLost(ScorerMutant):
    """Sequences are sorted by length for speed and not put back: each has another one's number."""

    def spoil(self, samples: Samples) -> Samples:
        """Number the rows anew."""
        lengths = samples.prompt_length + samples.response_length
        return evolve(keep_rows(samples, np.argsort(lengths, kind="stable").tolist()), sequence=samples.sequence)


class RankMissing(ScorerMutant):
    """Says that it is one of two ranks, the other of which nobody has."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Score, then report another rank."""
        scored = super().score(batch, request)
        return evolve(scored, rank=evolve(scored.rank, rank=1, world_size=2))


class MaskedZeroed(ScorerMutant):
    """Tokens that do not count have logprob 0.0, as though the mask were a factor."""

    def spoil(self, samples: Samples) -> Samples:
        """Multiply by the mask."""
        return evolve(samples, logprobs=np.where(samples.action_mask, samples.logprobs, np.float32(0)))


class StoredCoarsely(ScorerMutant):
    """Logprobs go through float16 on their way back."""

    def spoil(self, samples: Samples) -> Samples:
        """Round."""
        return evolve(samples, logprobs=samples.logprobs.astype(np.float16).astype(np.float32))


class EmptyPromptSwallowed(ScorerMutant):
    """A sequence that nothing can score is given a token of its own in front."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Score with a prompt where there is none."""
        return super().score(evolve(batch, prompts=[prompt or (0,) for prompt in batch.prompts]), request)


class IdentityHardCoded(ScorerMutant):
    """The digests are those of a checkpoint that was loaded once upon a time."""

    def identity(self) -> ScorerIdentity:
        """Always the same."""
        return ScorerIdentity(checkpoint_digest="0" * 64, tokenizer_digest="1" * 64)


class SeedIgnored(ScorerMutant):
    """Every call samples something else."""

    _calls = 0

    def sample(self, prompts: Sequence[Prompt], source: SampleSource) -> TokenBatch:
        """Sample with a seed that nobody asked for."""
        self._calls += 1
        return super().sample(prompts, evolve(source, seed=source.seed + self._calls))


SCORER_MUTANTS: tuple[type[ScorerMutant], ...] = (
    OffByOne,
    MaskIgnored,
    RowsDropped,
    NanSwallowed,
    StateMutated,
    PaddingMixedUp,
    StaleCache,
    OrderLost,
    RankMissing,
    MaskedZeroed,
    StoredCoarsely,
    EmptyPromptSwallowed,
    IdentityHardCoded,
    SeedIgnored,
)

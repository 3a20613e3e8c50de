"""Fake scorers that fail in one way each, for tests of what the host makes of it."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
from attrs import evolve

from xcfg.model.json import Json
from xcfg.model.sample import TokenBatch
from xcfg.plugin.protocols import Scored, ScoreRequest, ScorerSpec
from xcfg.testing.fakes import FakeScorer
from xcfg.testing.reshape import keep_rows


class OpenCrash(FakeScorer):
    """Raises while the engine is built."""

    def open(self, spec: ScorerSpec) -> None:
        """Always fails."""
        raise RuntimeError("the fake engine cannot be built")


class ScoreCrash(FakeScorer):
    """Raises while scoring."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Always fails."""
        raise RuntimeError("the fake engine cannot score")


class Hang(FakeScorer):
    """Never returns from scoring."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Wait for ever."""
        threading.Event().wait()
        raise AssertionError("unreachable")


class Killed(FakeScorer):
    """Dies by SIGKILL while scoring, as the kernel's out-of-memory killer would end it."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Kill the own process."""
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")


class NotANumber(FakeScorer):
    """Returns NaN for the first active token."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Score, then spoil one value."""
        scored = super().score(batch, request)
        logprobs = scored.samples.logprobs.copy()
        logprobs[np.flatnonzero(scored.samples.action_mask)[:1]] = np.nan
        return evolve(scored, samples=evolve(scored.samples, logprobs=logprobs))


class DroppedRank(FakeScorer):
    """Reports two ranks and returns the rows of the first alone: every other sequence is missing."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Score, then drop the rows that the second rank would have had."""
        scored = super().score(batch, request)
        kept = range(0, scored.samples.rows, 2)
        return evolve(scored, samples=keep_rows(scored.samples, kept), rank=evolve(scored.rank, world_size=2))


class PromptInMask(FakeScorer):
    """Takes the last prompt token for the first response token and counts it as active."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Score with the boundary one token too early; a prompt of one token stays as it is."""
        moved = [int(len(prompt) > 1) for prompt in batch.prompts]
        rows = list(zip(batch.prompts, batch.responses, batch.action_masks, moved, strict=True))
        early = evolve(
            batch,
            prompts=[prompt[: len(prompt) - by] for prompt, _, _, by in rows],
            responses=[(*prompt[len(prompt) - by :], *response) for prompt, response, _, by in rows],
            action_masks=[(*[True] * by, *mask) for _, _, mask, by in rows],
            sampled_logprobs=None,
        )
        return super().score(early, request)


class StateChanged(FakeScorer):
    """Changes a weight while scoring, as an optimizer step would."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Score, then move one weight by one unit in the last place."""
        scored = super().score(batch, request)
        head = self._weights.arrays["head"]
        head[0, 0] = np.nextafter(head[0, 0], np.float32(np.inf))
        return scored


class Fallback(FakeScorer):
    """Computes in float32 whatever dtype is asked for; its read-back tells."""

    def engine_values(self, spec: ScorerSpec) -> dict[str, Json]:
        """The values with every dtype replaced."""
        values = super().engine_values(spec)
        return {name: "float32" if name.endswith("dtype") else value for name, value in values.items()}


class Unobserved(FakeScorer):
    """Applies its compute dtype and does not show it."""

    def open(self, spec: ScorerSpec) -> None:
        """Open, then hide the dtypes."""
        super().open(spec)
        for name in ("rollout.dtype", "training.compute_dtype"):
            self.live.values.pop(name, None)

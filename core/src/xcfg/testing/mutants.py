"""Wrong wrappers round correct objects. The kit is only worth something if it fails every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import evolve

from xcfg.model.capability import Capability, Unobservable
from xcfg.model.experiment import SampleSource
from xcfg.model.json import Json
from xcfg.model.kernel import BoundKernel, KernelRequest
from xcfg.model.sample import Samples, TokenBatch
from xcfg.plugin.protocols import (
    KernelBackend,
    Materializer,
    Prompt,
    Scored,
    ScoreRequest,
    ScorerIdentity,
    ScorerSpec,
    Settings,
)
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


class SilentFallback:
    """A materializer that applies nothing and reads back what was asked for."""

    def __init__(self, inner: Materializer) -> None:
        """Wrap ``inner`` for its probe alone."""
        self.inner = inner

    _asked: dict[str, Json] = {}

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """As the correct one."""
        return self.inner.probe(knob, value, spec)

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Remember the request and leave the draft alone."""
        self._asked[knob] = value
        return value

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """Repeat the request."""
        return self._asked[knob]


class BackendNanSwallowed:
    """A kernel backend whose results are never NaN."""

    def __init__(self, inner: KernelBackend) -> None:
        """Wrap ``inner``."""
        self.inner = inner

    def probe(self, request: KernelRequest) -> Capability:
        """As the correct one."""
        return self.inner.probe(request)

    @contextmanager
    def bind(self, request: KernelRequest) -> Iterator[Callable[..., Any]]:
        """The correct function with its NaN replaced."""
        with self.inner.bind(request) as bound:

            def swallowing(logits: Any, targets: Any) -> Any:
                result = bound(logits, targets)
                result[result != result] = 0.0
                return result

            self._bound = bound
            yield swallowing

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """As the correct one."""
        return self.inner.identify(self._bound)


SCORER_MUTANTS: tuple[type[ScorerMutant], ...] = (OffByOne, MaskIgnored, RowsDropped, NanSwallowed, StateMutated)
"""Every wrong scorer. ``SilentFallback`` and ``BackendNanSwallowed`` are the wrong materializer and backend."""

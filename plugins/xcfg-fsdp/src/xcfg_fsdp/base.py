"""What the scorers of this plugin have in common: ranks of an elastic launch that score their share of every batch."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from xcfg.model.json import Json
from xcfg.model.kernel import KernelRequest
from xcfg.model.sample import TokenBatch
from xcfg.plugin import Scored, ScoreRequest, ScorerIdentity, ScorerSpec
from xcfg_torch.device import device_of_rank
from xcfg_torch.group import join, leave
from xcfg_torch.identity import model_identity
from xcfg_torch.live import Live
from xcfg_torch.operators import logprob_request
from xcfg_torch.scoring import Place, score_batch
from xcfg_torch.state import state_digest

if TYPE_CHECKING:
    import torch


class RankScorer(ABC):
    """One rank of a sharded model; there is no optimizer and no backward pass."""

    def __init__(self) -> None:
        """Nothing is built before :meth:`open`."""
        self.live: Any = None
        self._spec: ScorerSpec | None = None
        self._healthy = False

    def open(self, spec: ScorerSpec) -> None:
        """Join the ranks, load and shard. Engine settings: ``collective`` and those of the engine.

        Raises InvalidInput for a directory that is no model, EnvironmentFault for a missing device or launcher,
        UnsupportedError for a model or a number of ranks that cannot be divided so.
        """
        self._spec = spec
        device = device_of_rank(spec.engine.get("device"), int(os.environ.get("LOCAL_RANK", spec.rank)))
        join(spec.rank, spec.world_size, device, spec.engine.get("collective"), where="training.world_size")
        self.live = self._build(spec, device)
        self._healthy = True

    def identity(self) -> ScorerIdentity:
        """Digests of the files this rank loaded; no optimizer exists."""
        assert self._spec is not None
        return model_identity(self._spec, self._loaded())

    def kernel_request(self, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
        """A request for ``selected_logprob``; None for any other operator."""
        return logprob_request(self.live, operator, options)

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Logprobs (nats, float32) of the response tokens of this rank's rows; every rank must call it."""
        assert self._spec is not None
        spec, self._healthy = self._spec, False
        place = Place(rank=spec.rank, world_size=spec.world_size, parallel=self._degrees(), peers=self._peers())
        scored = score_batch(self.live, batch, request, place)
        self._healthy = True
        self._reshard()
        return evolve(scored, rank=evolve(scored.rank, facts={**scored.rank.facts, **self._facts()}))

    def state_digest(self) -> str:
        """SHA-256 of this rank's shards, buffers and gradients, after every layer was resharded."""
        self._reshard()
        return state_digest(self.live.model)

    def close(self) -> None:
        """Drop the model and leave the process group."""
        self.live = None
        leave(healthy=self._healthy)
        self._healthy = False

    @abstractmethod
    def _build(self, spec: ScorerSpec, device: torch.device) -> Live:
        """The hooked model of this rank."""

    @abstractmethod
    def _reshard(self) -> None:
        """Leave nothing but this rank's shards."""

    @abstractmethod
    def _degrees(self) -> Mapping[str, int]:
        """Degree of each parallel mode."""

    @abstractmethod
    def _facts(self) -> Mapping[str, Json]:
        """What this rank holds, for its metadata."""

    def _peers(self) -> int:
        """Ranks that compute the same rows together."""
        return 1

    def _loaded(self) -> Live:
        """The handle with the model as it was loaded."""
        live: Live = self.live
        return live

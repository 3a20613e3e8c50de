"""The scorer ``torch-tp``: a Hugging Face model split over the ranks of an elastic launch by its own plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from xcfg.model.json import Json
from xcfg.model.kernel import KernelRequest
from xcfg.model.sample import TokenBatch
from xcfg.plugin import Scored, ScoreRequest, ScorerIdentity, ScorerSpec
from xcfg_torch.device import device_of_rank
from xcfg_torch.group import join, leave
from xcfg_torch.identity import model_identity
from xcfg_torch.operators import logprob_request
from xcfg_torch.scoring import Place, score_batch
from xcfg_torch.state import state_digest
from xcfg_torch.tensor_parallel import open_split
from xcfg_torch.tp_readback import split_facts


class TensorParallelScorer:
    """One rank of a tensor-parallel model: all ranks compute the same rows, the first hands them in."""

    def __init__(self) -> None:
        """Nothing is built before :meth:`open`."""
        self.live: Any = None
        self._spec: ScorerSpec | None = None
        self._healthy = False

    def open(self, spec: ScorerSpec) -> None:
        """Join the ranks and load this rank's part of the weights. Engine settings: those of ``torch``, ``collective``
        and ``tp_layout``.

        Raises InvalidInput for a directory that is no model, EnvironmentFault for a missing device or launcher,
        UnsupportedError for a model that the ranks cannot split.
        """
        self._spec = spec
        device = device_of_rank(spec.engine.get("device"), int(os.environ.get("LOCAL_RANK", spec.rank)))
        join(spec.rank, spec.world_size, device, spec.engine.get("collective"))
        self.live = open_split(spec, device)
        self._healthy = True

    def identity(self) -> ScorerIdentity:
        """Digests of the files loaded; no optimizer exists."""
        assert self._spec is not None
        return model_identity(self._spec, self.live)

    def kernel_request(self, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
        """A request for ``selected_logprob``; None for any other operator."""
        return logprob_request(self.live, operator, options)

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Logprobs (nats, float32) of the response tokens, on the first rank; every rank must make the call."""
        assert self._spec is not None
        spec, self._healthy = self._spec, False
        size = spec.world_size
        place = Place(rank=spec.rank, world_size=size, parallel={"tp": size}, peers=size)
        scored = score_batch(self.live, batch, request, place)
        self._healthy = True
        return evolve(scored, rank=evolve(scored.rank, facts={**scored.rank.facts, **split_facts(self.live)}))

    def state_digest(self) -> str:
        """SHA-256 of this rank's parts of parameters, buffers and gradients."""
        return state_digest(self.live.model)

    def close(self) -> None:
        """Drop the model and leave the process group."""
        self.live = None
        leave(healthy=self._healthy)
        self._healthy = False

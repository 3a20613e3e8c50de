"""The scorer ``fsdp``: FSDP2 on the ranks of an elastic launch, without optimizer or backward pass."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from xcfg.model.json import Json
from xcfg.model.kernel import KernelRequest
from xcfg.model.sample import TokenBatch
from xcfg.plugin import Scored, ScoreRequest, ScorerIdentity, ScorerSpec
from xcfg_fsdp.context import ContextShare, share_columns
from xcfg_fsdp.group import join, leave
from xcfg_fsdp.mesh import context_group, mesh_of
from xcfg_fsdp.readback import parallel_degrees, reshard, shard_facts
from xcfg_fsdp.wrap import shard_model
from xcfg_torch.device import device_of_rank
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.identity import model_identity
from xcfg_torch.live import Live
from xcfg_torch.loading import load_model
from xcfg_torch.observe import observe
from xcfg_torch.operators import logprob_request
from xcfg_torch.scorer import open_whole
from xcfg_torch.scoring import Place, score_batch
from xcfg_torch.state import state_digest

if TYPE_CHECKING:
    import torch

UNSHARDED = "unsharded"


class FsdpScorer:
    """One rank of an FSDP2 model that scores its share of every batch."""

    def __init__(self) -> None:
        """Nothing is built before :meth:`open`."""
        self.live: Any = None
        self._spec: ScorerSpec | None = None
        self._healthy = False

    def open(self, spec: ScorerSpec) -> None:
        """Join the ranks, load and shard. Engine settings: those of ``torch`` and ``sharding``, ``reduce_dtype``,
        ``collective``, ``master_dtype``, ``context_parallel``.

        Raises InvalidInput for a directory that is no model, EnvironmentFault for a missing device or launcher,
        UnsupportedError for a model or a world size that cannot be sharded so.
        """
        self._spec = spec
        device = device_of_rank(spec.engine.get("device"), int(os.environ.get("LOCAL_RANK", spec.rank)))
        join(spec.rank, spec.world_size, device, spec.engine.get("collective"))
        sharding = spec.engine.get("sharding") or UNSHARDED
        self.live = open_whole(spec, device) if sharding == UNSHARDED else _open_sharded(spec, sharding, device)
        self._share_rows(int(spec.engine.get("context_parallel") or 1), spec.world_size)
        self._healthy = True

    def _share_rows(self, size: int, world_size: int) -> None:
        if size == 1:
            return
        group, index = context_group(size, world_size, self.live.device.type)
        self.live.share = ContextShare(group=group, size=size, index=index)
        share_columns(self.live.model, self.live.share, self.live.seen)

    def identity(self) -> ScorerIdentity:
        """Digests of the files this rank loaded; no optimizer exists."""
        assert self._spec is not None
        return model_identity(self._spec, self.live)

    def kernel_request(self, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
        """A request for ``selected_logprob``; None for any other operator."""
        return logprob_request(self.live, operator, options)

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Logprobs (nats, float32) of the response tokens of this rank's rows; every rank must call it."""
        assert self._spec is not None
        spec, self._healthy = self._spec, False
        peers = self.live.share.size if self.live.share else 1
        place = Place(rank=spec.rank, world_size=spec.world_size, parallel=parallel_degrees(self.live), peers=peers)
        scored = score_batch(self.live, batch, request, place)
        self._healthy = True
        return evolve(scored, rank=evolve(scored.rank, facts={**scored.rank.facts, **shard_facts(self.live)}))

    def state_digest(self) -> str:
        """SHA-256 of this rank's shards, buffers and gradients, after every layer was resharded."""
        reshard(self.live.model)
        return state_digest(self.live.model)

    def close(self) -> None:
        """Drop the model and leave the process group."""
        self.live = None
        leave(healthy=self._healthy)
        self._healthy = False


def _open_sharded(spec: ScorerSpec, sharding: str, device: torch.device) -> Live:
    model = load_model(
        spec.checkpoint,
        dtype=spec.engine.get("master_dtype"),
        attention=spec.engine.get("attention"),
        trust_remote_code=spec.trust_remote_code,
    )  # on the CPU: FSDP moves one layer at a time, so no device ever holds the whole model
    compute = spec.engine.get("dtype") or dtype_name(model.dtype)
    shard_model(model, mesh_of(sharding, spec.world_size, device.type), settings=spec.engine)
    logits = spec.engine.get("output_dtype") or compute
    return Live(model=model, device=device, seen=observe(model), logits_dtype=logits)

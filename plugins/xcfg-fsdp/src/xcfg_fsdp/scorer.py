"""The scorer ``fsdp``: FSDP2 on the ranks of an elastic launch, without optimizer or backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xcfg.model.json import Json
from xcfg.plugin import ScorerIdentity, ScorerSpec
from xcfg_fsdp.base import RankScorer
from xcfg_fsdp.facts import shard_facts
from xcfg_fsdp.groups import reshard
from xcfg_fsdp.live import FsdpLive
from xcfg_fsdp.opening import open_live
from xcfg_fsdp.placements import parallel_degrees
from xcfg_torch.identity import model_identity

if TYPE_CHECKING:
    import torch


class FsdpScorer(RankScorer):
    """One rank of an FSDP2 model. Engine settings besides ``collective``: those of :func:`open_live`."""

    def _build(self, spec: ScorerSpec, device: torch.device) -> FsdpLive:
        return open_live(spec, device)

    def identity(self) -> ScorerIdentity:
        """Digests of the files this rank loaded, and of each layer that the ranks hold; no optimizer exists."""
        assert self._spec is not None
        self._reshard()
        kind = self.live.device.type  # shards offloaded from a device cannot be gathered where they lie
        held = {parameter.device.type for parameter in self.live.model.parameters()}
        return model_identity(self._spec, self.live, by_layer=held == {kind})

    def _reshard(self) -> None:
        reshard(self.live.model)

    def _degrees(self) -> Mapping[str, int]:
        return parallel_degrees(self.live)

    def _facts(self) -> Mapping[str, Json]:
        return shard_facts(self.live)

    def _peers(self) -> int:
        peers: int = self.live.topology.peers
        return peers

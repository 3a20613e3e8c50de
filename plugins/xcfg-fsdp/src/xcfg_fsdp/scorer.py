"""The scorer ``fsdp``: FSDP2 on the ranks of an elastic launch, without optimizer or backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xcfg.model.json import Json
from xcfg.plugin import ScorerSpec
from xcfg_fsdp.base import RankScorer
from xcfg_fsdp.facts import shard_facts
from xcfg_fsdp.groups import reshard
from xcfg_fsdp.live import FsdpLive
from xcfg_fsdp.opening import open_live
from xcfg_fsdp.placements import parallel_degrees

if TYPE_CHECKING:
    import torch


class FsdpScorer(RankScorer):
    """One rank of an FSDP2 model. Engine settings besides ``collective``: those of :func:`open_live`."""

    def _build(self, spec: ScorerSpec, device: torch.device) -> FsdpLive:
        return open_live(spec, device)

    def _reshard(self) -> None:
        reshard(self.live.model)

    def _degrees(self) -> Mapping[str, int]:
        return parallel_degrees(self.live)

    def _facts(self) -> Mapping[str, Json]:
        return shard_facts(self.live)

    def _peers(self) -> int:
        peers: int = self.live.topology.peers
        return peers

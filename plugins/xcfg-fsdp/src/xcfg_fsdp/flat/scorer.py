"""The scorer ``fsdp1``: FSDP1 on the ranks of an elastic launch, without optimizer or backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import evolve

from xcfg.model.json import Json
from xcfg.plugin import ScorerSpec
from xcfg_fsdp.base import RankScorer
from xcfg_fsdp.flat.facts import flat_facts
from xcfg_fsdp.flat.handles import FlatLive, reshard, watch_freeing
from xcfg_fsdp.flat.strategies import SHARDING_OF
from xcfg_fsdp.flat.strategy import parallel_degrees
from xcfg_fsdp.flat.wrap import flatten_model
from xcfg_fsdp.mesh import UNSHARDED, mesh_of
from xcfg_fsdp.topology import Topology
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.live import Live
from xcfg_torch.loading import load_model
from xcfg_torch.observe import cast_logits, observe

if TYPE_CHECKING:
    import torch


class Fsdp1Scorer(RankScorer):
    """One rank of an FSDP1 model. Engine settings besides ``collective``: those of :func:`flatten_model`,
    ``output_dtype``, ``master_dtype``, ``attention``.
    """

    def _build(self, spec: ScorerSpec, device: torch.device) -> FlatLive:
        engine = spec.engine
        loaded = load_model(
            spec.checkpoint,
            dtype=engine.get("master_dtype"),
            attention=engine.get("attention"),
            trust_remote_code=spec.trust_remote_code,
        )
        logits = engine.get("output_dtype") or engine.get("dtype") or dtype_name(loaded.dtype)
        strategy = engine.get("strategy")
        sharding = SHARDING_OF[strategy] if strategy else engine.get("sharding") or UNSHARDED
        mesh = mesh_of(sharding, Topology(world_size=spec.world_size), device.type)
        model = flatten_model(loaded, mesh, device=device, settings=engine)
        if engine.get("output_dtype"):
            cast_logits(model, engine["output_dtype"])
        live = FlatLive(model=model, device=device, seen=observe(model), logits_dtype=logits)
        watch_freeing(live)
        return live

    def _loaded(self) -> Live:
        live: Live = self.live
        return evolve(live, model=live.model.module)

    def _reshard(self) -> None:
        reshard(self.live.model)

    def _degrees(self) -> Mapping[str, int]:
        return parallel_degrees(self.live)

    def _facts(self) -> Mapping[str, Json]:
        return flat_facts(self.live)

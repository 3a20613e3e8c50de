"""The scorer ``deepspeed``: a DeepSpeed engine on the ranks of an elastic launch, which takes no step."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from xcfg.errors import UnsupportedError
from xcfg.model.json import Json
from xcfg.model.kernel import KernelRequest
from xcfg.model.sample import TokenBatch
from xcfg.plugin import Scored, ScoreRequest, ScorerIdentity, ScorerSpec
from xcfg_deepspeed import shared_memory
from xcfg_deepspeed.engines import inference_engine, zero_engine
from xcfg_deepspeed.group import communication, join, leave
from xcfg_deepspeed.live import Called, DeepspeedLive
from xcfg_deepspeed.process_wide import Before, set_variables
from xcfg_deepspeed.readback import engine_facts, parallel_degrees
from xcfg_deepspeed.shapes import SHM, UNSHARDED, Shape
from xcfg_deepspeed.state import engine_digest, steps
from xcfg_deepspeed.tensor_parallel import check_heads, check_shared_memory, observe_shards, watch_sums
from xcfg_torch.compiling import compile_layers
from xcfg_torch.device import device_of_rank
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.identity import model_identity
from xcfg_torch.loading import load_model
from xcfg_torch.observe import cast_logits, observe
from xcfg_torch.operators import logprob_request
from xcfg_torch.scoring import Place, score_batch

if TYPE_CHECKING:
    import torch


class DeepspeedScorer:
    """One rank of a DeepSpeed engine that scores its share of every batch."""

    def __init__(self) -> None:
        """Nothing is built before :meth:`open`."""
        self.live: Any = None
        self._spec: ScorerSpec | None = None
        self._before: Before | None = None
        self._shape = Shape()
        self._healthy = False

    def open(self, spec: ScorerSpec) -> None:
        """Join the ranks, load and hand the model to DeepSpeed. Engine settings: those of ``torch`` and ``sharding``,
        ``zero_stage``, ``init_inference``, ``tensor_parallel``, ``collective``.

        Raises InvalidInput for a directory that is no model, EnvironmentFault for a missing device or launcher,
        UnsupportedError for settings, a model or a world size that DeepSpeed cannot combine.
        """
        self._spec, self._shape = spec, _shape(spec)
        fault = self._shape.fault()
        if fault:
            raise UnsupportedError(fault)
        device = device_of_rank(spec.engine.get("device"), int(os.environ.get("LOCAL_RANK", spec.rank)))
        sums = self._sums_itself(device)
        self._before = set_variables(shared_memory.variables(sums=sums))
        join(spec.rank, self._shape, device, sums=sums)
        self.live = _open_engine(spec, self._shape, device, sums=sums)
        self._healthy = True

    def _sums_itself(self, device: torch.device) -> bool:
        """Whether DeepSpeed's own operator may carry the sums, as it would without this scorer."""
        shape = self._shape
        local = device.type == "cpu" and shared_memory.all_local()
        if shape.collective == SHM and not local:
            raise UnsupportedError("shared memory joins the CPUs of one machine only", where="execution.collective")
        return local and shape.tensor_parallel > 1 and shape.collective in (None, SHM)

    def identity(self) -> ScorerIdentity:
        """Digests of the files this rank loaded, and the optimizer steps that the engine counted."""
        import deepspeed

        assert self._spec is not None
        found = model_identity(self._spec, self.live)
        kind = type(self.live.engine.module)
        named = {"model_class": f"{kind.__module__}.{kind.__qualname__}", "deepspeed": deepspeed.__version__}
        return evolve(found, optimizer_steps=steps(self.live.engine), recorded={**found.recorded, **named})

    def kernel_request(self, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
        """A request for ``selected_logprob``; None for any other operator."""
        return logprob_request(self.live, operator, options)

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Logprobs (nats, float32) of the response tokens of this rank's rows; every rank must call it."""
        assert self._spec is not None
        spec, self._healthy = self._spec, False
        degrees, peers = parallel_degrees(self.live), self._shape.tensor_parallel
        place = Place(rank=spec.rank, world_size=spec.world_size, parallel=degrees, peers=peers)
        scored = score_batch(self.live, batch, request, place)
        facts = engine_facts(self.live)
        self._healthy = True
        return evolve(scored, rank=evolve(scored.rank, facts={**scored.rank.facts, **facts}))

    def state_digest(self) -> str:
        """SHA-256 of this rank's share of parameters, buffers, gradients and master weights."""
        return engine_digest(self.live.engine)

    def close(self) -> None:
        """Drop the engine, leave the process group and undo what DeepSpeed changed for the whole process."""
        if self.live is not None and hasattr(self.live.engine, "global_steps"):
            self.live.engine.destroy()
        self.live = None
        leave(healthy=self._healthy)
        self._healthy = False
        if self._before is not None:
            self._before.restore()
            self._before = None


def _shape(spec: ScorerSpec) -> Shape:
    return Shape(
        world_size=spec.world_size,
        sharding=spec.engine.get("sharding") or UNSHARDED,
        stage=spec.engine.get("zero_stage"),
        inference=bool(spec.engine.get("init_inference")),
        tensor_parallel=int(spec.engine.get("tensor_parallel") or 1),
        collective=spec.engine.get("collective"),
    )


def _open_engine(spec: ScorerSpec, shape: Shape, device: torch.device, *, sums: bool) -> DeepspeedLive:
    model = load_model(
        spec.checkpoint,
        dtype=spec.engine.get("dtype"),
        attention=spec.engine.get("attention"),
        trust_remote_code=spec.trust_remote_code,
    )  # on the CPU: DeepSpeed moves what a rank keeps
    dtype, elements = dtype_name(model.dtype), sum(parameter.numel() for parameter in model.parameters())
    output_dtype = spec.engine.get("output_dtype")
    if output_dtype:
        cast_logits(model, output_dtype)
    if spec.engine.get("compile"):
        compile_layers(model)
    carried: set[str] = set()
    if shape.inference:
        check_heads(model, shape.tensor_parallel)
        if shape.collective == SHM:
            check_shared_memory(communication(), dtype)
        engine = inference_engine(model, tensor_parallel=shape.tensor_parallel, dtype=dtype)
        carried = watch_sums(communication(), own_operator=sums)
    else:
        engine = zero_engine(model, stage=shape.zero_stage, dtype=dtype)
    seen = observe(engine.module)
    observe_shards(engine.module, seen)
    return DeepspeedLive(
        model=Called(engine),
        device=device,
        seen=seen,
        logits_dtype=output_dtype or dtype,
        engine=engine,
        elements=elements,
        communication=communication(),
        carried=carried,
    )

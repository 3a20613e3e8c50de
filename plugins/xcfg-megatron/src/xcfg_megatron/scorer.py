"""The scorer ``megatron``: GPTModel on the ranks of an elastic launch, without optimizer, loss or backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from xcfg.errors import UnsupportedError
from xcfg.model.json import Json
from xcfg.model.kernel import KernelRequest
from xcfg.model.sample import TokenBatch
from xcfg.plugin import Scored, ScoreRequest, ScorerIdentity, ScorerSpec
from xcfg_megatron.adapter import adapter_class
from xcfg_megatron.build import build, check_ranks, stored_tensors
from xcfg_megatron.checkpoint import Tensors
from xcfg_megatron.geometry import Geometry, geometry, padded_vocabulary, read_config
from xcfg_megatron.layers import chosen_spec
from xcfg_megatron.live import MegatronLive, watch_projections
from xcfg_megatron.parallel import Degrees, groups, join, leave, local_rank
from xcfg_megatron.pipeline import Pipeline
from xcfg_megatron.readback import megatron_facts, parallel_degrees
from xcfg_torch.device import device_of_rank
from xcfg_torch.dtypes import dtype_name, torch_dtype
from xcfg_torch.head import FULL_VOCABULARY, HeadShare
from xcfg_torch.identity import model_identity
from xcfg_torch.limits import check_batch
from xcfg_torch.observe import cast_logits, observe
from xcfg_torch.operators import logprob_request
from xcfg_torch.scoring import Place, score_batch
from xcfg_torch.state import state_digest

if TYPE_CHECKING:
    import torch


class MegatronScorer:
    """One rank of a GPTModel that scores, with its peers, their share of every batch."""

    def __init__(self) -> None:
        """Nothing is built before :meth:`open`."""
        self.live: Any = None
        self._spec: ScorerSpec | None = None
        self._healthy = False

    def open(self, spec: ScorerSpec) -> None:
        """Join the ranks, build the model, fill it and prove it. Engine settings: ``dtype``, ``output_dtype``,
        ``device``, ``collective``, ``tensor_parallel``, ``pipeline_parallel``, ``vocab_padding``, ``padded_vocab``,
        ``tp_layout``, ``layer_spec``.

        Raises InvalidInput for a checkpoint that does not fit, EnvironmentFault for a missing engine, device or
        launcher, UnsupportedError for a model that has no mapping or that the ranks cannot share.
        """
        self._spec, engine = spec, spec.engine
        device = device_of_rank(engine.get("device"), local_rank(spec.rank))
        config = read_config(spec.checkpoint, trust_remote_code=spec.trust_remote_code)
        shape = geometry(config)
        degrees = Degrees(
            tensor=int(engine.get("tensor_parallel") or 1), pipeline=int(engine.get("pipeline_parallel") or 1)
        )
        check_ranks(shape, degrees, int(engine.get("vocab_padding") or 1), device.type)
        stored = stored_tensors(spec.checkpoint, shape)
        join(spec.rank, spec.world_size, device, degrees, engine.get("collective"))
        self.live = _open(engine, config, shape, stored, degrees, device)
        self._healthy = True

    def identity(self) -> ScorerIdentity:
        """Digests of the files this rank loaded, and of each layer as the ranks hold it; no optimizer exists."""
        assert self._spec is not None
        found, gpt = model_identity(self._spec, self.live), type(self.live.gpt)
        recorded = {
            **found.recorded,
            "model_class": f"{gpt.__module__}.{gpt.__qualname__}",
            "sections": self.live.sections,
        }
        return evolve(found, recorded=recorded)

    def kernel_request(self, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
        """A request for ``selected_logprob``; None for any other operator."""
        self.live.kernel = logprob_request(self.live, operator, options)
        return self.live.kernel

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Logprobs (nats, float32) of the response tokens of this rank's rows; every rank must call it.

        Raises InvalidInput for a token that is no token but a row of padding of the output head.
        """
        assert self._spec is not None
        spec, shape = self._spec, self.live.shape
        check_batch(batch, columns=shape.vocabulary, positions=shape.positions)
        self._healthy = False
        degrees = parallel_degrees()
        place = Place(rank=spec.rank, world_size=spec.world_size, parallel=degrees, peers=degrees["tp"] * degrees["pp"])
        scored = score_batch(self.live, batch, request, place)
        self._healthy = True
        return evolve(scored, rank=evolve(scored.rank, facts={**scored.rank.facts, **megatron_facts(self.live)}))

    def state_digest(self) -> str:
        """SHA-256 of this rank's parameters, buffers and gradients."""
        return state_digest(self.live.model)

    def close(self) -> None:
        """Drop the model and leave the process groups."""
        self.live = None
        leave(healthy=self._healthy)
        self._healthy = False


def _open(
    engine: Mapping[str, Json],
    config: Any,
    shape: Geometry,
    stored: Tensors,
    degrees: Degrees,
    device: torch.device,
) -> MegatronLive:
    pipeline = Pipeline.of_this_rank()
    kind, multiple = chosen_spec(engine.get("layer_spec"), device.type), int(engine.get("vocab_padding") or 1)
    dtype = torch_dtype(engine.get("dtype") or dtype_name(config.dtype))
    built = build(
        stored,
        shape,
        pipeline,
        tensor_parallel=degrees.tensor,
        multiple=multiple,
        kind=kind,
        dtype=dtype,
        device=device,
    )
    bounds = _bounds(built.gpt, pipeline)
    rank = groups()["tp"].rank()
    columns = bounds[rank][1] - bounds[rank][0]
    model = adapter_class()(built.gpt, config=config, pipeline=pipeline, columns=columns, kind=kind)
    output_dtype = engine.get("output_dtype")
    if output_dtype:
        cast_logits(model, output_dtype)
    live = MegatronLive(
        model=model,
        device=device,
        seen=observe(model),
        logits_dtype=output_dtype or dtype_name(dtype),
        head=_head(engine, shape, multiple, bounds),
        shape=shape,
        multiple=multiple,
        sections=built.sections,
    )
    watch_projections(live)
    return live


def _bounds(gpt: Any, pipeline: Pipeline) -> list[tuple[int, int]]:
    """[start, end) of the head's rows on every tensor-parallel rank, from the live heads of the last stage."""
    import torch.distributed as dist

    group = groups()["tp"]
    own = 0
    if pipeline.last:
        head = gpt.output_layer.weight
        own = len(gpt.embedding.word_embeddings.weight if head is None else head)
    own = pipeline.from_all(own)[-1]
    rows: list[Any] = [None] * group.size()
    dist.all_gather_object(rows, own, group=group)
    ends = [sum(rows[: index + 1]) for index in range(len(rows))]
    return [(end - count, end) for end, count in zip(ends, rows, strict=True)]


def _head(
    engine: Mapping[str, Json], shape: Geometry, multiple: int, bounds: list[tuple[int, int]]
) -> HeadShare | None:
    """None where this rank has the whole head and nothing of it is padding."""
    padded = padded_vocabulary(shape.vocabulary, multiple)
    if engine.get("padded_vocab") and padded == shape.vocabulary:
        raise UnsupportedError(
            "the output head has no row of padding that could be in the normaliser: layout.vocab_padding adds none",
            where="megatron.padded_vocab_in_normaliser",
        )
    if len(bounds) == 1 and padded == shape.vocabulary:
        return None
    group = groups()["tp"]
    return HeadShare(
        group=group,
        rank=group.rank(),
        bounds=bounds,
        vocab_size=padded if engine.get("padded_vocab") else shape.vocabulary,
        layout=str(engine.get("tp_layout") or FULL_VOCABULARY),
    )

"""Every strategy, world size and compute dtype: the bits of the scorer ``torch``, or float64 to 2e-5 where layers are
split; every value asked for is applied and observed, put in the place of another and seen, or refused with a reason."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from xcfg_fsdp.testing.cases import fsdp1_play, fsdp_play
from xcfg_fsdp.testing.models import make_even_qwen3
from xcfg_fsdp.testing.several import play_several
from xcfg_torch.testing.cases import played as torch_played
from xcfg_torch.testing.oracle import oracle_logprobs

pytestmark = pytest.mark.full

SHARDING, STRATEGY = "training.sharding", "fsdp.strategy"
TENSOR, CONTEXT, LAYOUT = "training.tensor_parallel_size", "training.context_parallel_size", "fsdp.context_layout"
BACKEND = "logp.backend"  # the host names it on the operator that it binds
VOCABULARY = {"logp.tp_layout": "vocab-parallel", BACKEND: "deterministic"}
OUTPUT = {"training.output_dtype": "float32"}

FSDP2 = {
    "unsharded": {SHARDING: "unsharded"},
    "full": {SHARDING: "full_shard"},
    "hybrid": {SHARDING: "hybrid"},
    "reshard": {SHARDING: "full_shard", "fsdp.reshard_after_forward": True},
    "keep": {SHARDING: "full_shard", "fsdp.reshard_after_forward": False},
    "offload": {SHARDING: "full_shard", "fsdp.cpu_offload": True, "training.reduce_dtype": "float32"},
    "output": {SHARDING: "full_shard", **OUTPUT},
}
SPLIT = {
    f"tp{size}-{name}": {TENSOR: size, SHARDING: name, **layout}
    for size, layout in ((2, {}), (2, VOCABULARY), (4, VOCABULARY))
    for name in ("unsharded", "full_shard", "hybrid")
    if not (layout and size == 2 and name != "full_shard")
}
SHARED = {
    f"cp{size}-{layout}": {CONTEXT: size, LAYOUT: layout, "training.attention_backend": "eager"}
    for size in (2, 4)
    for layout in ("contiguous", "zigzag")
} | {"cp2-tp2": {CONTEXT: 2, TENSOR: 2, LAYOUT: "zigzag"}}
FSDP1 = {
    name: {SHARDING: sharding, STRATEGY: name}
    for name, sharding in {
        "FULL_SHARD": "full_shard",
        "SHARD_GRAD_OP": "full_shard",
        "NO_SHARD": "unsharded",
        "HYBRID_SHARD": "hybrid",
        "_HYBRID_SHARD_ZERO2": "hybrid",
    }.items()
} | {"buffers": {"fsdp.buffer_dtype": "float32", **OUTPUT}}
SAME = ("training.compute_dtype", "training.attention_backend", "training.output_dtype")
DTYPES = ("float32", "bfloat16")


@pytest.fixture(scope="module")
def even(tmp_path_factory):
    return make_even_qwen3(tmp_path_factory.mktemp("models") / "even")


@pytest.fixture(scope="module", params=[1, 2, 4])
def launched(request, even, batch, tmp_path_factory):
    """(world size, knobs of every play by its name, what the ranks gave)."""
    world = request.param
    knobs, plays = {}, {}
    for make, table in ((fsdp_play, {**FSDP2, **SPLIT, **SHARED}), (fsdp1_play, FSDP1)):
        for name, asked in table.items():
            for dtype in DTYPES:
                key = f"{name}/{dtype}"
                knobs[key] = {"training.world_size": world, "training.compute_dtype": dtype, **asked}
                narrow = {"options": {"block": 64}} if BACKEND in asked else {}  # a shard's bounds are those of blocks
                plays[key] = make(even, knobs[key], **narrow)
    return world, knobs, play_several(plays, batch, tmp_path_factory.mktemp("launch") / str(world), ranks=world)


def _refusal(name: str, asked, world: int) -> str:
    """Why such a launch cannot be: worked out by hand."""
    split, shared = asked.get(TENSOR, 1), asked.get(CONTEXT, 1)
    if world % (split * shared):
        return f"does not divide the {world} ranks"
    if asked.get(SHARDING) == "hybrid" and world // split < 2:
        return "hybrid sharding needs at least 2 ranks"
    return ""


def test_what_cannot_be_is_refused_on_every_rank(launched) -> None:
    world, knobs, found = launched
    for name, ranks in found.items():
        reason = _refusal(name, knobs[name], world)
        assert reason in ranks.error and bool(reason) == bool(ranks.error), (name, ranks.error)


def test_logprobs_are_those_of_one_process(launched, even, batch) -> None:
    _, knobs, found = launched
    expected = {}
    oracle = np.concatenate(oracle_logprobs(even, batch))
    for name, ranks in found.items():
        if ranks.error:
            continue
        asked = knobs[name]
        same = {
            key: asked[key] for key in ("training.compute_dtype", "training.attention_backend", *OUTPUT) if key in asked
        }
        if asked.get(TENSOR, 1) > 1:
            limit = 2e-5 if asked["training.compute_dtype"] == "float32" else 0.15
            assert np.abs(ranks.logprobs - oracle).max() < limit, name
            continue
        key = tuple(sorted(same.items()))
        if key not in expected:
            expected[key] = torch_played(even, batch, same).scored[0].samples.logprobs
        assert ranks.logprobs.tobytes() == expected[key].tobytes(), name


def _seen(name: str, asked, world: int, knob: str):
    """The value in force where it is not the one asked for: what torch puts in its place."""
    if name.split("/")[0] in FSDP1 and knob in (SHARDING, STRATEGY):
        sharding = asked.get(SHARDING, "full_shard")
        if world == 1 or (sharding == "hybrid" and world == 2):  # a shard group of one rank
            return "unsharded" if knob == SHARDING else "NO_SHARD"
    return asked[knob]


def test_every_value_asked_for_is_observed(launched) -> None:
    world, knobs, found = launched
    for name, ranks in found.items():
        for knob in () if ranks.error else knobs[name].keys() - {BACKEND}:
            assert ranks.observed(knob) == _seen(name, knobs[name], world, knob), (name, knob)
        assert all(document["unchanged"] for document in ranks.documents), name


def test_parts_of_parameters_and_rows_are_as_said(launched) -> None:
    world, knobs, found = launched
    for name, ranks in found.items():
        if ranks.error:
            continue
        facts = [document["facts"] for document in ranks.documents]
        if name.split("/")[0] in ("full", "reshard", "keep", "offload"):
            assert sum(item["local_elements"] for item in facts) == facts[0]["elements"], name
        if name.startswith("hybrid/"):
            assert sum(item["local_elements"] for item in facts) == 2 * facts[0]["elements"], name
        if knobs[name].get(CONTEXT, 1) > 1:
            size = knobs[name][CONTEXT]
            every = facts[:: knobs[name].get(TENSOR, 1)][:size]
            width = facts[0]["forward_shapes"][0][1]
            assert sorted(chain.from_iterable(item["columns"][0] for item in every)) == list(range(width)), name
        if knobs[name].get(TENSOR, 1) > 1:
            size = knobs[name][TENSOR]
            bounds = [[256 // size * rank, 256 // size * (rank + 1)] for rank in range(size)]
            assert [item["head_columns"] for item in facts] == bounds * (world // size), name

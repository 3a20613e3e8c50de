"""Descriptors, vetoes and the conformance kit."""

from __future__ import annotations

import pytest
from attrs import evolve

from xcfg.model.case import Case, SideConfig
from xcfg.model.experiment import Checkpoint
from xcfg.model.scorer import Role
from xcfg.plugin import ScoreRequest, ScorerSpec
from xcfg.testing.knob_tests import KnobTests
from xcfg.testing.plugin_tests import PluginTests
from xcfg.testing.scorer_tests import ScorerTests
from xcfg_fsdp.flat.materialize import Fsdp1Materializer
from xcfg_fsdp.flat.scorer import Fsdp1Scorer
from xcfg_fsdp.knobs import BUFFER_DTYPE, CHECKPOINTING, LAYOUT, MASTER_DTYPE, OFFLOAD, RESHARD, STRATEGY
from xcfg_fsdp.materialize import FsdpMaterializer
from xcfg_fsdp.materializers import FLAT_MATERIALIZERS, MATERIALIZERS
from xcfg_fsdp.plugin import xcfg_process_environment, xcfg_reject_case
from xcfg_fsdp.scorer import FsdpScorer
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.play import load
from xcfg_torch.testing.tiny_model import make_tiny_qwen3


class TestFsdpPlugin(PluginTests):
    name = "fsdp"
    distribution = "xcfg-fsdp"
    engines = ("torch", "transformers", "numpy")


class TestMasterDtype(KnobTests):
    knob = MASTER_DTYPE
    accepted = {"fp32": "float32", "bfloat16": "bfloat16", None: None}
    refused = ("int8", 1)


class TestBufferDtype(KnobTests):
    knob = BUFFER_DTYPE
    accepted = {"bf16": "bfloat16", "float32": "float32", None: None}
    refused = ("int8", True)


class _SwitchTests(KnobTests):
    accepted = {True: True, False: False, None: None}
    refused = ("yes", 1)


class TestReshardAfterForward(_SwitchTests):
    knob = RESHARD


class TestCpuOffload(_SwitchTests):
    knob = OFFLOAD


class TestActivationCheckpointing(_SwitchTests):
    knob = CHECKPOINTING


class TestContextLayout(KnobTests):
    knob = LAYOUT
    accepted = {"contiguous": "contiguous", "zigzag": "zigzag", None: None}
    refused = ("ring", 2)


class TestStrategy(KnobTests):
    knob = STRATEGY
    accepted = {"FULL_SHARD": "FULL_SHARD", "_HYBRID_SHARD_ZERO2": "_HYBRID_SHARD_ZERO2", None: None}
    refused = ("full_shard", 3)


class TestFsdpScorer(ScorerTests):
    atol = 2e-5
    vocabulary = 256

    def make_scorer(self):
        return FsdpScorer()

    def spec(self, folder):
        return ScorerSpec(
            role=Role.TRAINING,
            checkpoint=make_tiny_qwen3(folder / "tiny"),
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine={"dtype": "float32", "sharding": "full_shard", "device": "cpu"},
        )

    def oracle(self, batch, spec):
        return oracle_logprobs(spec.checkpoint, batch)

    def request(self, scorer):
        backend = load("xcfg_kernels.production:Production")()
        with backend.bind(scorer.kernel_request("selected_logprob", {})) as bound:
            return ScoreRequest(settings={"batch_size": 3}, operators={"selected_logprob": bound})


class TestFsdp1Scorer(TestFsdpScorer):
    def make_scorer(self):
        return Fsdp1Scorer()

    def spec(self, folder):
        return evolve(super().spec(folder), engine={"dtype": "float32", "sharding": "unsharded", "device": "cpu"})


@pytest.mark.parametrize(
    ("rows", "materializer"), [(MATERIALIZERS, FsdpMaterializer), (FLAT_MATERIALIZERS, Fsdp1Materializer)]
)
def test_every_knob_can_be_read_back(rows, materializer) -> None:
    assert {item.knob for item in rows if item.target} == set(materializer.readers)
    assert len({item.knob for item in rows}) == len(rows)


def _case(scorer="fsdp", **knobs) -> Case:
    checkpoint = Checkpoint(path="model")
    named = {name.replace("__", "."): value for name, value in knobs.items()}
    return Case(
        id="case",
        rollout=SideConfig(role=Role.ROLLOUT, scorer="torch", checkpoint=checkpoint),
        training=SideConfig(role=Role.TRAINING, scorer=scorer, checkpoint=checkpoint, knobs=named),
    )


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"training__sharding": "hybrid", "training__world_size": 1}, "at least 2"),
        ({"training__sharding": "unsharded", "training__reduce_dtype": "float32"}, "training.reduce_dtype"),
        ({"training__sharding": "unsharded", "fsdp__master_dtype": "float32"}, "fsdp.master_dtype"),
        ({"training__context_parallel_size": 2, "training__world_size": 3}, "does not divide the 3 ranks"),
        ({"training__context_parallel_size": 2, "training__world_size": 1}, "does not divide the 1 ranks"),
        (
            {"training__context_parallel_size": 2, "training__world_size": 2, "training__compile": True},
            "training.compile",
        ),
        (
            {"training__tensor_parallel_size": 2, "training__world_size": 2, "training__compile": True},
            "training.compile",
        ),
        ({"training__tensor_parallel_size": 3, "training__world_size": 4}, "3 does not divide the 4 ranks"),
        (
            {"training__tensor_parallel_size": 2, "training__context_parallel_size": 2, "training__world_size": 6},
            "2 times training.tensor_parallel_size 2 does not divide the 6 ranks",
        ),
        (
            {"training__tensor_parallel_size": 2, "training__sharding": "hybrid", "training__world_size": 2},
            "at least 2",
        ),
        ({"logp__tp_layout": "vocab-parallel", "training__tensor_parallel_size": 1}, "logp.tp_layout"),
        ({"fsdp__context_layout": "zigzag", "training__context_parallel_size": 1}, "fsdp.context_layout"),
        ({"training__sharding": "unsharded", "fsdp__reshard_after_forward": True}, "fsdp.reshard_after_forward"),
        ({"training__sharding": "unsharded", "fsdp__cpu_offload": True}, "fsdp.cpu_offload"),
    ],
)
def test_vetoes(knobs, words) -> None:
    case = _case(**knobs)
    found = xcfg_reject_case(case=case, baseline=case)
    assert found is not None
    assert found.kind == "veto"
    assert words in found.reason
    other = _case(scorer="torch", **knobs)
    assert xcfg_reject_case(case=other, baseline=other) is None


@pytest.mark.parametrize(
    "knobs",
    [
        {"training__sharding": "hybrid", "training__world_size": 2},
        {"training__sharding": "hybrid", "training__world_size": 4, "training__tensor_parallel_size": 2},
        {"training__tensor_parallel_size": 2, "training__context_parallel_size": 2, "training__world_size": 4},
        {"logp__tp_layout": "vocab-parallel", "training__tensor_parallel_size": 2, "training__world_size": 2},
        {"fsdp__context_layout": "zigzag", "training__context_parallel_size": 2, "training__world_size": 2},
        {"training__context_parallel_size": 2, "training__world_size": 4, "training__compile": False},
        {"training__context_parallel_size": 1, "training__world_size": 3, "training__compile": True},
        {"training__sharding": "full_shard", "training__world_size": 1, "training__reduce_dtype": "float32"},
        {"training__sharding": "unsharded", "training__world_size": 2, "training__reduce_dtype": None},
    ],
)
def test_what_has_a_meaning_passes(knobs) -> None:
    case = _case(**knobs)
    assert xcfg_reject_case(case=case, baseline=case) is None


@pytest.mark.parametrize("sharding", ["unsharded", "full_shard", "hybrid"])
@pytest.mark.parametrize("strategy", STRATEGY.domain.values)
def test_a_strategy_of_another_sharding_is_vetoed(strategy, sharding) -> None:
    means = {"NO": "unsharded", "HYBRID": "hybrid", "FULL": "full_shard", "SHARD": "full_shard"}
    own = means[strategy.strip("_").split("_")[0]]
    case = _case(scorer="fsdp1", fsdp__strategy=strategy, training__sharding=sharding, training__world_size=2)
    found = xcfg_reject_case(case=case, baseline=case)
    assert (found is None) == (own == sharding)
    assert found is None or f"{strategy} means training.sharding: {own}" in found.reason


def test_a_hybrid_of_one_rank_is_vetoed_for_both() -> None:
    for scorer in ("fsdp", "fsdp1"):
        case = _case(scorer=scorer, training__sharding="hybrid", training__world_size=1)
        assert "at least 2" in xcfg_reject_case(case=case, baseline=case).reason


def test_environment_is_the_scorers_only() -> None:
    for scorer in ("fsdp", "fsdp1"):
        assert xcfg_process_environment(side=_case(scorer).training)["HF_HUB_OFFLINE"] == "1"
    assert xcfg_process_environment(side=_case().rollout) == {}

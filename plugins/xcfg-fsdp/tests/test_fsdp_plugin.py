"""Descriptors, vetoes and the conformance kit."""

from __future__ import annotations

import pytest

from xcfg.model.case import Case, SideConfig
from xcfg.model.experiment import Checkpoint
from xcfg.model.scorer import Role
from xcfg.plugin import ScoreRequest, ScorerSpec
from xcfg.testing.knob_tests import KnobTests
from xcfg.testing.plugin_tests import PluginTests
from xcfg.testing.scorer_tests import ScorerTests
from xcfg_fsdp.knobs import MASTER_DTYPE, MATERIALIZERS
from xcfg_fsdp.materialize import FsdpMaterializer
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


def test_every_knob_can_be_read_back() -> None:
    assert {item.knob for item in MATERIALIZERS} == set(FsdpMaterializer.readers)


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
        {"training__context_parallel_size": 2, "training__world_size": 4, "training__compile": False},
        {"training__context_parallel_size": 1, "training__world_size": 3, "training__compile": True},
        {"training__sharding": "full_shard", "training__world_size": 1, "training__reduce_dtype": "float32"},
        {"training__sharding": "unsharded", "training__world_size": 2, "training__reduce_dtype": None},
    ],
)
def test_what_has_a_meaning_passes(knobs) -> None:
    case = _case(**knobs)
    assert xcfg_reject_case(case=case, baseline=case) is None


def test_environment_is_the_scorers_only() -> None:
    assert xcfg_process_environment(side=_case().training)["HF_HUB_OFFLINE"] == "1"
    assert xcfg_process_environment(side=_case().rollout) == {}

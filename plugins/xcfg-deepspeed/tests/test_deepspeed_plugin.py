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
from xcfg_deepspeed.knobs import INIT_INFERENCE, MATERIALIZERS, ZERO_STAGE
from xcfg_deepspeed.materialize import DeepspeedMaterializer
from xcfg_deepspeed.plugin import xcfg_process_environment, xcfg_reject_case
from xcfg_deepspeed.scorer import DeepspeedScorer
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.play import load
from xcfg_torch.testing.tiny_model import make_tiny_qwen3


class TestDeepspeedPlugin(PluginTests):
    name = "deepspeed"
    distribution = "xcfg-deepspeed"
    engines = ("torch", "transformers", "numpy", "deepspeed")


class TestZeroStage(KnobTests):
    knob = ZERO_STAGE
    accepted = {0: 0, 3: 3, None: None}
    refused = (4, -1, "3", True)


class TestInitInference(KnobTests):
    knob = INIT_INFERENCE
    accepted = {True: True, False: False}
    refused = ("yes", 1)


class TestDeepspeedScorer(ScorerTests):
    atol = 2e-5
    vocabulary = 256
    settings = {"sharding": "full_shard", "zero_stage": 3}

    def make_scorer(self):
        return DeepspeedScorer()

    def spec(self, folder):
        return ScorerSpec(
            role=Role.TRAINING,
            checkpoint=make_tiny_qwen3(folder / "tiny"),
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine={"dtype": "float32", "device": "cpu", **self.settings},
        )

    def oracle(self, batch, spec):
        return oracle_logprobs(spec.checkpoint, batch)

    def request(self, scorer):
        backend = load("xcfg_kernels.production:Production")()
        with backend.bind(scorer.kernel_request("selected_logprob", {})) as bound:
            return ScoreRequest(settings={"batch_size": 3}, operators={"selected_logprob": bound})


def test_every_knob_can_be_read_back() -> None:
    assert {item.knob for item in MATERIALIZERS if item.target} == set(DeepspeedMaterializer.readers)


def _case(scorer="deepspeed", **knobs) -> Case:
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
        ({"training__sharding": "unsharded", "deepspeed__zero_stage": 3}, "training.sharding says unsharded"),
        ({"training__sharding": "full_shard", "deepspeed__zero_stage": 0}, "full_shard is ZeRO-3"),
        ({"training__sharding": "full_shard", "deepspeed__zero_stage": 2}, "leaves parameters whole"),
        ({"training__sharding": "full_shard", "deepspeed__init_inference": True}, "init_inference has no ZeRO"),
        ({"deepspeed__zero_stage": 1, "deepspeed__init_inference": True}, "init_inference has no ZeRO"),
        ({"training__tensor_parallel_size": 2, "training__world_size": 2}, "needs deepspeed.init_inference: true"),
        (
            {
                "training__tensor_parallel_size": 2,
                "training__world_size": 4,
                "deepspeed__init_inference": True,
            },
            "makes one group, of the first ranks",
        ),
        ({"execution__collective": "shm"}, "tensor parallelism only"),
        ({"training__compile": True, "training__sharding": "full_shard"}, "training.compile"),
        ({"training__compile": True, "deepspeed__init_inference": True}, "training.compile"),
    ],
)
def test_vetoes(knobs, words) -> None:
    case = _case(**knobs)
    found = xcfg_reject_case(case=case, baseline=case)
    assert found is not None
    assert found.kind == "veto"
    assert words in found.reason
    other = _case(scorer="fsdp", **knobs)
    assert xcfg_reject_case(case=other, baseline=other) is None


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"training__sharding": "full_shard"},
        {"training__sharding": "full_shard", "deepspeed__zero_stage": 3, "training__world_size": 3},
        {"training__sharding": "unsharded", "deepspeed__zero_stage": 2, "training__compile": True},
        {"deepspeed__zero_stage": 0, "deepspeed__init_inference": True},
        {"training__tensor_parallel_size": 4, "training__world_size": 4, "deepspeed__init_inference": True},
    ],
)
def test_what_has_a_meaning_passes(knobs) -> None:
    case = _case(**knobs)
    assert xcfg_reject_case(case=case, baseline=case) is None


def test_environment_is_the_scorers_only() -> None:
    assert xcfg_process_environment(side=_case(torch__device="cpu").training)["DS_ACCELERATOR"] == "cpu"
    assert "DS_ACCELERATOR" not in xcfg_process_environment(side=_case(torch__device=None).training)
    assert xcfg_process_environment(side=_case().rollout) == {}

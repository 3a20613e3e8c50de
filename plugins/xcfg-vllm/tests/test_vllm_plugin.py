"""Descriptors, vetoes, environment and the conformance kit's checks that need no engine."""

from __future__ import annotations

import pytest

from xcfg.errors import EnvironmentFault
from xcfg.model.case import Case, SideConfig
from xcfg.model.experiment import Checkpoint
from xcfg.model.scorer import Launch, Role
from xcfg.runner import child_engine
from xcfg.runner.launch import LaunchSpec
from xcfg.testing.knob_tests import KnobTests
from xcfg.testing.plugin_tests import PluginTests
from xcfg_vllm.knobs import KNOBS
from xcfg_vllm.materialize import ENGINE_KEYS, REQUEST_KEYS
from xcfg_vllm.materializers import MATERIALIZERS
from xcfg_vllm.plugin import xcfg_process_environment, xcfg_reject_case, xcfg_scorers
from xcfg_vllm.readback import READERS

OWN = {knob.name: knob for knob in KNOBS}


class TestVllmPlugin(PluginTests):
    name = "vllm"
    distribution = "xcfg-vllm"
    engines = ("vllm", "torch", "transformers", "numpy", "psutil")


class TestSeed(KnobTests):
    knob = OWN["vllm.seed"]
    accepted = {0: 0, 2**32 - 1: 2**32 - 1}
    refused = (-1, 2**32, 1.5, None)


class TestBlockSize(KnobTests):
    knob = OWN["vllm.block_size"]
    accepted = {32: 32, None: None}
    refused = (0, "32")


class TestMaxModelLen(KnobTests):
    knob = OWN["vllm.max_model_len"]
    accepted = {2048: 2048, None: None}
    refused = (0, True)


class TestKvCacheBlocks(TestMaxModelLen):
    knob = OWN["vllm.kv_cache_blocks"]


class TestMaxNumBatchedTokens(TestMaxModelLen):
    knob = OWN["vllm.max_num_batched_tokens"]


class TestExecutorBackend(KnobTests):
    knob = OWN["vllm.executor_backend"]
    accepted = {"mp": "mp", "uni": "uni"}
    refused = ("ray", None, 1)


class TestFrontend(KnobTests):
    knob = OWN["vllm.frontend"]
    accepted = {"offline": "offline", "server": "server"}
    refused = ("http", None, False)


class TestLora(KnobTests):
    knob = OWN["vllm.lora"]
    accepted = {"adapters/one": "adapters/one", None: None}
    refused = (1, True)


class TestMinP(KnobTests):
    knob = OWN["vllm.min_p"]
    accepted = {0: 0.0, 0.1: 0.1, 1: 1.0}
    refused = (-0.1, 1.5, float("nan"), None, "0.1")


class TestPrefixCacheState(KnobTests):
    knob = OWN["vllm.prefix_cache_state"]
    accepted = {"warm": "warm", "cold": "cold", None: None}
    refused = ("off", True)


def test_every_knob_can_be_applied_and_read_back() -> None:
    declared = {item.knob for item in MATERIALIZERS if not item.inapplicable}
    assert declared == set(READERS)
    assert declared == {*ENGINE_KEYS, *REQUEST_KEYS, "execution.threads", "execution.collective"}


def test_declares_what_it_needs_and_can() -> None:
    (scorer,) = xcfg_scorers()
    assert scorer.samples and scorer.forces and scorer.read_only
    assert (scorer.roles, scorer.launch, scorer.requires) == ((Role.ROLLOUT,), Launch.SINGLE, ("vllm",))


def test_without_the_engine_the_pip_line_is_given(monkeypatch) -> None:
    monkeypatch.setattr(child_engine, "find_spec", lambda name: None)
    (scorer,) = xcfg_scorers()
    spec = LaunchSpec(
        role=Role.ROLLOUT,
        scorer=scorer.id,
        target=scorer.target,
        launch=scorer.launch,
        world_size=1,
        requires=scorer.requires,
        install=scorer.install,
        checkpoint="model",
        engine=[],
        folder="out",
    )
    with pytest.raises(EnvironmentFault, match=r'vllm is not installed.*pip install "xcfg-vllm\[cpu\]"'):
        child_engine.prepare(spec, child_engine.Knobs(spec))


def _case(scorer="vllm", **knobs) -> Case:
    checkpoint = Checkpoint(path="model")
    named = {name.replace("__", "."): value for name, value in knobs.items()}
    return Case(
        id="case",
        rollout=SideConfig(role=Role.ROLLOUT, scorer=scorer, checkpoint=checkpoint, knobs=named),
        training=SideConfig(role=Role.TRAINING, scorer="torch", checkpoint=checkpoint),
    )


PREFILL = {"rollout__scoring_path": "prefill", "sampling__logprobs_mode": "raw_logprobs"}


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({**PREFILL, "execution__prefix_cache": True}, "never reads the prefix cache"),
        (
            {**PREFILL, "sampling__logprobs_mode": "processed_logprobs", "sampling__temperature": 0.7},
            "skip temperature",
        ),
        ({**PREFILL, "sampling__logprobs_mode": "processed_logprobs", "sampling__top_p": 0.9}, "skip temperature"),
        ({**PREFILL, "sampling__logprobs_mode": "processed_logprobs", "sampling__top_k": 5}, "skip temperature"),
        ({**PREFILL, "sampling__logprobs_mode": "processed_logprobs", "vllm__min_p": 0.1}, "skip temperature"),
        ({**PREFILL, "execution__prefix_cache": False, "vllm__prefix_cache_state": "cold"}, "says nothing while"),
        ({**PREFILL, "rollout__tensor_parallel_size": 2, "vllm__executor_backend": "uni"}, "uni runs one worker"),
        ({**PREFILL, "batch__size": 8, "execution__max_num_seqs": 4}, "8 sequences cannot run together"),
        (
            {**PREFILL, "rollout__enforce_eager": True, "execution__compile_mode": "DYNAMO_TRACE_ONCE"},
            "compiles nothing while rollout.enforce_eager is true",
        ),
    ],
)
def test_vetoes(knobs, words) -> None:
    found = xcfg_reject_case(case=_case(**knobs), baseline=_case())
    assert found is not None
    assert found.kind == "veto"
    assert words in found.reason
    assert xcfg_reject_case(case=_case(scorer="torch", **knobs), baseline=_case()) is None


@pytest.mark.parametrize(
    "knobs",
    [
        {**PREFILL, "execution__prefix_cache": False},
        {**PREFILL, "execution__prefix_cache": None},
        {**PREFILL, "sampling__temperature": 0.7, "sampling__top_p": 0.9, "sampling__top_k": 5},
        {**PREFILL, "batch__size": 4, "execution__max_num_seqs": 4},
        {**PREFILL, "vllm__min_p": 0.1, "vllm__executor_backend": "uni", "rollout__tensor_parallel_size": 1},
        {**PREFILL, "batch__size": 4, "execution__max_num_seqs": None},
        {**PREFILL, "rollout__enforce_eager": True, "execution__compile_mode": "NONE"},
        {**PREFILL, "rollout__enforce_eager": None, "execution__compile_mode": "DYNAMO_TRACE_ONCE"},
        {**PREFILL, "sampling__logprobs_mode": "processed_logprobs", "sampling__temperature": 1.0},
        {
            "rollout__scoring_path": "forced_decode",
            "sampling__logprobs_mode": "processed_logprobs",
            "sampling__temperature": 0.7,
            "execution__prefix_cache": True,
        },
    ],
)
def test_what_can_be_measured_passes(knobs) -> None:
    case = _case(**knobs)
    assert xcfg_reject_case(case=case, baseline=case) is None


def test_environment_is_the_scorers_only() -> None:
    variables = xcfg_process_environment(side=_case(batch__size=5).rollout)
    assert variables["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert variables["XCFG_VLLM_SAMPLE_BATCH"] == "5"
    assert xcfg_process_environment(side=_case().training) == {}

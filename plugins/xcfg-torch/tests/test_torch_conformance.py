"""The conformance kit on this plugin."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
from attrs import evolve

from xcfg.model.scorer import Role
from xcfg.plugin import ScoreRequest, ScorerSpec, Settings
from xcfg.testing.batches import toy_batch
from xcfg.testing.knob_tests import KnobTests
from xcfg.testing.materializer_tests import MaterializerTests
from xcfg.testing.plugin_tests import PluginTests
from xcfg.testing.scorer_tests import ScorerTests
from xcfg_torch.knobs import (
    DEVICE,
    FORWARD,
    HEAD_DTYPE,
    NORM_KERNEL,
    PREFILL_CHUNK,
    ROLLOUT_PREFILL_CHUNK,
    SDPA_KERNEL,
)
from xcfg_torch.materialize import TorchMaterializer
from xcfg_torch.materializers import MATERIALIZERS
from xcfg_torch.scorer import TorchScorer
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.play import load
from xcfg_torch.testing.tiny_model import make_tiny_qwen3
from xcfg_torch.tp_scorer import TensorParallelScorer


class TestTorchPlugin(PluginTests):
    name = "torch"
    distribution = "xcfg-torch"
    engines = ("torch", "transformers", "numpy")


class TestDeviceKnob(KnobTests):
    knob = DEVICE
    accepted = {"cpu": "cpu", "cuda": "cuda", None: None}
    refused = ("tpu", 0, True)


class TestHeadDtypeKnob(KnobTests):
    knob = HEAD_DTYPE
    accepted = {"fp32": "float32", "float32": "float32", None: None}
    refused = ("bfloat16", 32)


class TestNormKernelKnob(KnobTests):
    knob = NORM_KERNEL
    accepted = {"fused": "fused", "unfused": "unfused", None: None}
    refused = ("rms", True)


class TestSdpaKernelKnob(KnobTests):
    knob = SDPA_KERNEL
    accepted = {"math": "math", "flash": "flash", None: None}
    refused = ("eager", 1)


class TestForwardKnob(KnobTests):
    knob = FORWARD
    accepted = {"whole": "whole", "cached_decode": "cached_decode", "chunked_prefill": "chunked_prefill"}
    refused = ("decode", None, 1)


class TestPrefillChunkKnob(KnobTests):
    knob = PREFILL_CHUNK
    accepted = {1: 1, 64: 64, None: None}
    refused = (0, "64", True)


class TestRolloutPrefillChunkKnob(TestPrefillChunkKnob):
    knob = ROLLOUT_PREFILL_CHUNK


def _operators(scorer):
    backend = load("xcfg_kernels.production:Production")()
    with backend.bind(scorer.kernel_request("selected_logprob", {})) as bound:  # nothing to undo
        return {"selected_logprob": bound}


class TestTorchScorer(ScorerTests):
    atol = 2e-5
    vocabulary = 256
    settings = {"batch_size": 3, "padding_side": "right"}

    def make_scorer(self):
        return TorchScorer()

    def spec(self, folder):
        checkpoint = make_tiny_qwen3(folder / "tiny")
        return ScorerSpec(
            role=Role.TRAINING,
            checkpoint=checkpoint,
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine={"dtype": "float32"},
        )

    def oracle(self, batch, spec):
        return oracle_logprobs(spec.checkpoint, batch)

    def request(self, scorer):
        return ScoreRequest(settings=self.settings, operators=_operators(scorer))


class TestTorchScorerPaddingLeft(TestTorchScorer):
    settings = {"batch_size": 8, "micro_size": 2, "padding_side": "left"}


class TestTensorParallelScorer(TestTorchScorer):
    """The plan of a single rank, which needs no launcher."""

    def make_scorer(self):
        pytest.importorskip("accelerate", reason="accelerate is not installed")
        return TensorParallelScorer()

    def spec(self, folder):
        return evolve(super().spec(folder), engine={"dtype": "float32", "tensor_parallel": 1, "device": "cpu"})


class _Materializes(MaterializerTests):
    """One knob on the tiny model; subclasses name it."""

    @pytest.fixture(autouse=True)
    def _tiny(self, checkpoint):
        self.checkpoint = checkpoint

    @property
    def descriptor(self):
        return next(item for item in MATERIALIZERS if item.knob == self.knob.name)

    def make_materializer(self):
        return TorchMaterializer()

    @contextmanager
    def running(self, settings: Settings):
        scorer = TorchScorer()
        scorer.open(
            ScorerSpec(
                role=Role.TRAINING,
                checkpoint=self.checkpoint,
                trust_remote_code=False,
                rank=0,
                world_size=1,
                engine=settings.engine,
            )
        )
        scorer.score(toy_batch(256), ScoreRequest(settings=settings.request, operators=_operators(scorer)))
        yield scorer.live
        scorer.close()


def _core_knob(name):
    from xcfg.builtin.knobs import KNOBS

    return next(knob for knob in KNOBS if knob.name == name)


class TestComputeDtype(_Materializes):
    knob = _core_knob("training.compute_dtype")
    values = {"float32": "float32", "bfloat16": "bfloat16", "float16": "float16"}

    def witness(self, live):
        (dtype,) = {parameter.dtype for parameter in live.model.parameters()}
        return str(dtype).removeprefix("torch.")


class TestAttentionBackend(_Materializes):
    knob = _core_knob("training.attention_backend")
    values = {"sdpa": "sdpa", "eager": "eager", None: None}

    def witness(self, live):
        return live.model.config._attn_implementation


class TestOutputDtype(_Materializes):
    knob = _core_knob("training.output_dtype")
    values = {"float32": "float32", "bfloat16": "bfloat16", None: None}


class TestBatchSize(_Materializes):
    knob = _core_knob("batch.size")
    values = {1: 1, 2: 2, 4: 4}


class TestMicroSize(_Materializes):
    knob = _core_knob("batch.micro_size")
    values = {1: 1, None: None}


class _Padded(_Materializes):
    @contextmanager
    def running(self, settings: Settings):
        settings.request |= {"padding_side": "left", "batch_size": 3} | settings.request
        with super().running(settings) as live:
            yield live


class TestPaddingSide(_Padded):
    knob = _core_knob("layout.padding_side")
    values = {"left": "left", "right": "right"}


class TestPositionIds(_Padded):
    knob = _core_knob("layout.position_ids")
    values = {"sequential": "sequential", "padded": "padded"}


class TestDeterministic(_Materializes):
    knob = _core_knob("logp.deterministic")
    values = {False: False, True: True}


class TestPacking(_Materializes):
    knob = _core_knob("layout.packing")
    values = {False: False, True: True}


class TestScoringPath(_Materializes):
    knob = _core_knob("rollout.scoring_path")
    values = {"prefill": "prefill", "forced_decode": "forced_decode"}


class TestForward(_Materializes):
    knob = FORWARD
    values = {"whole": "whole", "cached_decode": "cached_decode"}


class _Chunked(_Materializes):
    @contextmanager
    def running(self, settings: Settings):
        settings.request["forward"] = "chunked_prefill"
        with super().running(settings) as live:
            yield live


class TestPrefillChunk(_Chunked):
    knob = PREFILL_CHUNK
    values = {2: 2, 4: 4}


class TestSdpaKernel(_Materializes):
    knob = SDPA_KERNEL
    values = {"math": "math", "flash": "flash", None: None}
    unsupported = () if torch.cuda.is_available() else ("efficient", "cudnn")


class TestNormKernel(_Materializes):
    knob = NORM_KERNEL
    values = {"fused": "fused", "unfused": "unfused", None: None}


class TestHeadDtype(_Materializes):
    knob = HEAD_DTYPE
    values = {"float32": "float32", None: "bfloat16"}

    @contextmanager
    def running(self, settings: Settings):
        settings.engine["dtype"] = "bfloat16"
        with super().running(settings) as live:
            yield live

    def witness(self, live):
        return str(live.model.lm_head.weight.dtype).removeprefix("torch.")

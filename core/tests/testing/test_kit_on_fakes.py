"""The kit's own classes, held against the fakes."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from xcfg.builtin.knobs import KNOBS
from xcfg.model.scorer import Role
from xcfg.plugin.checkpoint import digest_checkpoint
from xcfg.plugin.protocols import ScoreRequest, ScorerSpec, Settings
from xcfg.testing import KernelBackendTests, MaterializerTests, PluginTests, ScorerTests
from xcfg.testing.backends import CoarseBackend, ExactBackend
from xcfg.testing.batches import toy_batch
from xcfg.testing.checkpoints import write_checkpoint
from xcfg.testing.descriptors import BACKENDS, MATERIALIZERS
from xcfg.testing.fakes import FakeScorer, KernelFakeScorer
from xcfg.testing.language import Weights
from xcfg.testing.materialize import EngineMaterializer, RequestMaterializer

KNOB = {knob.name: knob for knob in KNOBS}
MATERIALIZER = {item.knob: item for item in MATERIALIZERS if item.scorer == "fake"}


def exact_logprobs(batch, spec):
    """Teacher forcing in float64 from the definition of the fake model, one sequence at a time."""
    weights = Weights(int(digest_checkpoint(spec.checkpoint).weights[:16], 16), 64)
    arrays = {name: array.astype(np.float64) for name, array in weights.arrays.items()}
    rows = []
    for prompt, response in zip(batch.prompts, batch.responses, strict=True):
        state, row = np.zeros(arrays["mixer"].shape[0]), []
        tokens = [*prompt, *response]
        for position, token in enumerate(tokens[:-1]):
            state = 0.75 * state + arrays["embedding"][token]
            hidden = np.tanh(state @ arrays["mixer"] + arrays["position"][position])
            logits = hidden @ arrays["head"]
            row.append(logits[tokens[position + 1]] - np.log(np.exp(logits).sum()))
        rows.append(np.array(row[len(prompt) - 1 :]))
    return rows


def spec_of(folder, role, **engine):
    return ScorerSpec(
        role=role, checkpoint=write_checkpoint(folder), trust_remote_code=False, rank=0, world_size=1, engine=engine
    )


class TestTestingPlugin(PluginTests):
    name = "testing"
    distribution = "xcfg"
    engines = ("torch", "numpy", "zarr", "pytest")


class TestFakeTraining(ScorerTests):
    atol = 2e-5

    def make_scorer(self):
        return FakeScorer()

    def spec(self, folder):
        return spec_of(folder, Role.TRAINING, **{"training.compute_dtype": "float32"})

    def oracle(self, batch, spec):
        return exact_logprobs(batch, spec)


class TestFakeRollout(TestFakeTraining):
    def spec(self, folder):
        return spec_of(folder, Role.ROLLOUT, **{"rollout.dtype": "float32", "rollout.tensor_parallel_size": 2})


class TestFakeWithKernel(TestFakeTraining):
    def make_scorer(self):
        return KernelFakeScorer()

    def request(self, scorer):
        return ScoreRequest(operators={"selected_logprob": ExactBackend().function()})


class OfFake(MaterializerTests):
    """Materializers of the fake scorer, which opens a checkpoint in a temporary folder."""

    role = Role.ROLLOUT

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def make_materializer(self):
        return EngineMaterializer()

    @contextmanager
    def running(self, settings: Settings):
        scorer = FakeScorer()
        scorer.open(spec_of(self.folder, self.role, **settings.engine))
        self.scorer = scorer
        scorer.score(toy_batch(16), ScoreRequest(settings=settings.request))
        yield scorer.live
        scorer.close()


class TestRolloutDtype(OfFake):
    knob = KNOB["rollout.dtype"]
    descriptor = MATERIALIZER["rollout.dtype"]
    values = {"float32": "float32", "bfloat16": "bfloat16"}

    def witness(self, live):
        return self.scorer._model.precision.compute


class TestKvCacheDtype(OfFake):
    knob = KNOB["rollout.kv_cache_dtype"]
    descriptor = MATERIALIZER["rollout.kv_cache_dtype"]
    values = {None: "bfloat16", "float8_e4m3fn": "float8_e4m3fn"}

    def witness(self, live):
        return self.scorer._model.precision.cache


class TestAttentionBackend(OfFake):
    role = Role.TRAINING
    knob = KNOB["training.attention_backend"]
    descriptor = MATERIALIZER["training.attention_backend"]
    values = {None: None, "sdpa": "sdpa", "eager": "eager"}


class TestBatchSize(OfFake):
    knob = KNOB["batch.size"]
    descriptor = MATERIALIZER["batch.size"]
    values = {2: 2, 8: 8}

    def make_materializer(self):
        return RequestMaterializer()


class _Cast(OfFake):
    """A knob whose null the engine does without."""

    knob = KNOB["rollout.kv_cache_dtype"]
    descriptor = MATERIALIZER["rollout.kv_cache_dtype"]
    values = {None: None, "float8_e4m3fn": "float8_e4m3fn"}
    observed = None

    def make_materializer(self):
        made = EngineMaterializer()
        read = made.read_back
        made.read_back = lambda knob, live: self.observed if read(knob, live) == "bfloat16" else read(knob, live)
        return made


class TestNoneIsAValue(_Cast):
    none_is_a_value = True


@pytest.mark.parametrize(
    ("observed", "is_value", "words"),
    [
        (None, False, "an engine always runs with some value"),
        ("bfloat16", True, "None is observed as 'bfloat16'"),
    ],
)
def test_nothing_is_observed_where_that_is_a_value(tmp_path, observed, is_value, words) -> None:
    checks = _Cast()
    checks.folder, checks.observed, checks.none_is_a_value = tmp_path, observed, is_value
    with pytest.raises(AssertionError, match=words):
        checks.test_read_back_sees_what_was_applied()


@pytest.mark.parametrize("observed", [1, "true"])
def test_a_value_of_another_type_is_another_value(tmp_path, observed) -> None:
    """True is 1 in Python and not in JSON, where the host compares."""
    checks = TestBatchSize()
    checks.folder, checks.values = tmp_path, {2: True}
    checks.make_materializer = lambda: type("Typed", (RequestMaterializer,), {"read_back": lambda *_: observed})()
    with pytest.raises(AssertionError, match="is observed as"):
        checks.test_read_back_sees_what_was_applied()


class TestExactBackend(KernelBackendTests):
    descriptor = BACKENDS[0]
    atol = 1e-6

    def make_backend(self):
        return ExactBackend()


class TestCoarseBackend(KernelBackendTests):
    descriptor = BACKENDS[1]
    atol = 128.0  # half a step of bfloat16 at logprobs above 2**15, which the kit's largest logits reach

    def make_backend(self):
        return CoarseBackend()

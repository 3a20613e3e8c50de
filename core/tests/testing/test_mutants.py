"""The kit fails every mutant and passes the original it wraps."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

SUITE = """
from contextlib import contextmanager
import numpy as np
from xcfg.builtin.knobs import KNOBS
from xcfg.model.scorer import Role
from xcfg.plugin.checkpoint import digest_checkpoint
from xcfg.plugin.protocols import ScoreRequest, ScorerSpec
from xcfg.testing import KernelBackendTests, MaterializerTests, ScorerTests, mutants
from xcfg.testing.backends import ExactBackend
from xcfg.testing.batches import toy_batch
from xcfg.testing.checkpoints import write_checkpoint
from xcfg.testing.descriptors import BACKENDS, MATERIALIZERS
from xcfg.testing.fakes import FakeScorer, KernelFakeScorer
from xcfg.testing.language import Weights
from xcfg.testing.materialize import EngineMaterializer
from pathlib import Path

CHECKPOINT = write_checkpoint(Path(__file__).parent / "checkpoint")

def spec_of(engine):
    return ScorerSpec(role=Role.TRAINING, checkpoint=CHECKPOINT, trust_remote_code=False, rank=0, world_size=1,
                      engine=engine)

class TestOriginal(ScorerTests):
    atol = 2e-5
    def make_scorer(self):
        return KernelFakeScorer()
    def spec(self, folder):
        return spec_of({"training.compute_dtype": "float32"})
    def oracle(self, batch, spec):
        weights = Weights(int(digest_checkpoint(CHECKPOINT).weights[:16], 16), 64).arrays
        rows = []
        for prompt, response in zip(batch.prompts, batch.responses):
            tokens, state, row = [*prompt, *response], 0.0, []
            for position, (token, following) in enumerate(zip(tokens, tokens[1:])):
                state = 0.75 * state + weights["embedding"][token].astype(float)
                logits = np.tanh(state @ weights["mixer"] + weights["position"][position]) @ weights["head"]
                row.append(logits[following] - np.log(np.exp(logits).sum()))
            rows.append(np.array(row[len(prompt) - 1:]))
        return rows

{scorers}

class TestOriginalMaterializer(MaterializerTests):
    knob = next(knob for knob in KNOBS if knob.name == "training.compute_dtype")
    descriptor = next(item for item in MATERIALIZERS if item.knob == "training.compute_dtype")
    values = {"float32": "float32", "float16": "float16"}
    def make_materializer(self):
        return EngineMaterializer()
    @contextmanager
    def running(self, settings):
        scorer = FakeScorer()
        scorer.open(spec_of(settings.engine))
        scorer.score(toy_batch(16), ScoreRequest(settings=settings.request))
        yield scorer.live

class TestSilentFallback(TestOriginalMaterializer):
    def make_materializer(self):
        return mutants.SilentFallback(EngineMaterializer())

class TestOriginalBackend(KernelBackendTests):
    descriptor = BACKENDS[0]
    atol = 1e-6
    def make_backend(self):
        return ExactBackend()

class TestBackendNanSwallowed(TestOriginalBackend):
    def make_backend(self):
        return mutants.BackendNanSwallowed(ExactBackend())
"""
SCORER = """
class Test{name}(TestOriginal):
    def make_scorer(self):
        return mutants.{name}(KernelFakeScorer())
"""
SCORER_MUTANTS = ("OffByOne", "MaskIgnored", "RowsDropped", "NanSwallowed", "StateMutated")

FOUND_BY = {
    "OffByOne": "test_labels_are_not_shifted",
    "MaskIgnored": "test_tokens_masks_and_positions_are_the_batchs",
    "RowsDropped": "test_every_sequence_comes_back_once",
    "NanSwallowed": "test_nan_is_not_swallowed",
    "StateMutated": "test_state_is_unchanged",
    "SilentFallback": "test_read_back_comes_from_the_live_object",
    "BackendNanSwallowed": "test_nan_stays_nan_in_its_row",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Class name -> (names of the tests that passed, names of those that did not)."""
    folder = tmp_path_factory.mktemp("kit")
    scorers = "".join(SCORER.format(name=name) for name in SCORER_MUTANTS)
    (folder / "test_suite.py").write_text(SUITE.replace("{scorers}", scorers), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=out.xml", "test_suite.py"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True, check=False)
    found: dict[str, tuple[set[str], set[str]]] = {}
    for case in ElementTree.parse(folder / "out.xml").iter("testcase"):
        name = case.get("classname", "").rpartition(".Test")[2]
        passed, failed = found.setdefault(name, (set(), set()))
        (failed if len(case) else passed).add(case.get("name", ""))
    return found


@pytest.mark.parametrize("original", ["Original", "OriginalMaterializer", "OriginalBackend"])
def test_the_original_passes_everything(outcomes, original):
    passed, failed = outcomes[original]
    assert len(passed) > 5
    assert failed == set()


@pytest.mark.parametrize(("mutant", "test"), FOUND_BY.items())
def test_the_mutant_is_found(outcomes, mutant, test):
    assert test in outcomes[mutant][1]


def test_no_mutant_is_forgotten(outcomes):
    from xcfg.testing import mutants

    assert {cls.__name__ for cls in mutants.SCORER_MUTANTS} == set(SCORER_MUTANTS)
    assert set(FOUND_BY) == {name for name in outcomes if not name.startswith("Original")}

"""The originals and every mutant of them as classes of the kit; test_mutants.py has pytest run this file."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from xcfg.builtin.importers import IMPORTERS
from xcfg.builtin.knobs import KNOBS
from xcfg.importers.slime import Slime
from xcfg.importers.trl import Trl
from xcfg.model.capability import Supported, Unsupported
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role
from xcfg.plugin.checkpoint import digest_checkpoint
from xcfg.plugin.protocols import ScoreRequest, ScorerSpec
from xcfg.testing import ImporterTests, KernelBackendTests, MaterializerTests, ScorerTests, mutants
from xcfg.testing.backends import ExactBackend
from xcfg.testing.batches import toy_batch
from xcfg.testing.checkpoints import write_checkpoint
from xcfg.testing.descriptors import BACKENDS, MATERIALIZERS
from xcfg.testing.fakes import FakeScorer, KernelFakeScorer
from xcfg.testing.language import Weights
from xcfg.testing.materialize import EngineMaterializer

CHECKPOINT = write_checkpoint(Path(__file__).parent / "checkpoint")


def spec_of(engine):
    return ScorerSpec(
        role=Role.TRAINING, checkpoint=CHECKPOINT, trust_remote_code=False, rank=0, world_size=1, engine=engine
    )


class TestOriginal(ScorerTests):
    atol = 2e-5

    def make_scorer(self):
        return KernelFakeScorer()

    def spec(self, folder):
        return spec_of({"training.compute_dtype": "float32"})

    def oracle(self, batch, spec):
        weights = Weights(int(digest_checkpoint(CHECKPOINT).weights[:16], 16), 64).arrays
        rows = []
        for prompt, response in zip(batch.prompts, batch.responses, strict=True):
            tokens, state, row = [*prompt, *response], 0.0, []
            for position, (token, following) in enumerate(itertools.pairwise(tokens)):
                state = 0.75 * state + weights["embedding"][token].astype(float)
                logits = np.tanh(state @ weights["mixer"] + weights["position"][position]) @ weights["head"]
                row.append(logits[following] - np.log(np.exp(logits).sum()))
            rows.append(np.array(row[len(prompt) - 1 :]))
        return rows


class TestOriginalMaterializer(MaterializerTests):
    knob = next(knob for knob in KNOBS if knob.name == "training.compute_dtype")
    descriptor = next(item for item in MATERIALIZERS if item.knob == "training.compute_dtype")
    values = {"float32": "float32", "float16": "float16"}
    unsupported = ["bfloat16"]

    def make_materializer(self):
        return Choosy()

    @contextmanager
    def running(self, settings):
        scorer = FakeScorer()
        scorer.open(spec_of(settings.engine))
        scorer.score(toy_batch(16), ScoreRequest(settings=settings.request))
        yield scorer.live


class Choosy(EngineMaterializer):
    def probe(self, knob, value, spec):
        return Unsupported("not here") if value == "bfloat16" else Supported()


class TestOriginalBackend(KernelBackendTests):
    descriptor = BACKENDS[0]
    atol = 1e-6

    def make_backend(self):
        return ExactBackend()


class TestOriginalImporter(ImporterTests):
    """Two completions, padded on the right."""

    descriptor = next(item for item in IMPORTERS if item.id == "trl")
    logprobs = {Role.ROLLOUT: "sampling_per_token_logps", Role.TRAINING: "old_per_token_logps"}
    required = ("prompt_ids", "completion_ids")
    numbers = {Role.ROLLOUT: [[-1.5, 0.0, -0.25], [-2.0, -0.5]], Role.TRAINING: [[-1.75, -3.0, -0.25], [-2.5, -0.5]]}

    def make_importer(self):
        return Trl()

    def rows(self, role):
        return [
            Row(
                place=f"step{at}.npz",
                fields={
                    "prompt_ids": np.array([[7, 8]]),
                    "prompt_mask": np.array([[1, 1]]),
                    "completion_ids": np.array([tokens]),
                    "completion_mask": np.array([mask]),
                    "tool_mask": np.array([tools]),
                    **{
                        name: np.array([self.numbers[side][at] + [-9.0] * at], dtype=np.float32)
                        for side, name in self.logprobs.items()
                    },
                },
            )
            for at, (tokens, mask, tools) in enumerate(
                [([21, 22, 23], [1, 1, 1], [1, 0, 1]), ([30, 31, 0], [1, 1, 0], [1, 1, 1])]
            )
        ]

    def records(self, role):
        return [
            Record(
                id=f"row {at}",
                response_ids=np.array(tokens),
                mask=np.array(mask),
                prompt_ids=np.array([7, 8]),
                logprobs=np.array(self.numbers[role][at], dtype=np.float32),
                assumed=("id",),
            )
            for at, (tokens, mask) in enumerate([([21, 22, 23], [True, False, True]), ([30, 31], [True, True])])
        ]


class TestOriginalDump(ImporterTests):
    """Lists of unequal lengths, under names that sort another way."""

    descriptor = next(item for item in IMPORTERS if item.id == "slime")
    logprobs = {Role.ROLLOUT: "rollout_log_probs", Role.TRAINING: "log_probs"}
    required = ("tokens",)
    numbers = {Role.ROLLOUT: [[-1.5, 0.0, -0.25], [-2.0, -0.5]], Role.TRAINING: [[-1.75, -3.0, -0.25], [-2.5, -0.5]]}

    def make_importer(self):
        return Slime()

    def rows(self, role):
        data = {
            "tokens": [[7, 8, 21, 22, 23], [7, 8, 30, 31]],
            "response_lengths": [3, 2],
            "sample_indices": [9, 4],
            **{name: self.numbers[side] for side, name in self.logprobs.items()},
        }
        return [Row(place="train_3.pt", fields={"rollout_id": 3, "rank": 0, "rollout_data": data})]

    def records(self, role):
        return [
            Record(
                id=name,
                response_ids=np.array(tokens),
                prompt_ids=np.array([7, 8]),
                logprobs=np.array(numbers),
                rank=0 if role is Role.TRAINING else None,
            )
            for name, tokens, numbers in zip(("9", "4"), ([21, 22, 23], [30, 31]), self.numbers[role], strict=True)
        ]


ON_DUMPS = ("RecordsSorted", "LengthsRepaired", "DuplicatesDropped", "BadRowsSkipped", "NullIsCertainty")
"""What shows on lists: null, lists of unequal lengths, and names that do not count the rows."""


def spoilt(original, method, mutant, inner):
    globals()[f"Test{mutant.__name__}"] = type(
        f"Test{mutant.__name__}", (original,), {method: lambda self: mutant(inner()), "__module__": __name__}
    )


for mutant in mutants.SCORER_MUTANTS:
    spoilt(TestOriginal, "make_scorer", mutant, KernelFakeScorer)
for mutant in mutants.MATERIALIZER_MUTANTS:
    spoilt(TestOriginalMaterializer, "make_materializer", mutant, Choosy)
for mutant in mutants.BACKEND_MUTANTS:
    spoilt(TestOriginalBackend, "make_backend", mutant, ExactBackend)
for mutant in mutants.IMPORTER_MUTANTS:
    original, inner = (TestOriginalDump, Slime) if mutant.__name__ in ON_DUMPS else (TestOriginalImporter, Trl)
    spoilt(original, "make_importer", mutant, inner)

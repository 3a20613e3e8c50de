"""The kit's checks of a torch scorer's materializers on one rank in this process: one class for each knob."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from xcfg.model.json import Json
from xcfg.model.sample import TokenBatch
from xcfg.model.scorer import MaterializerDescriptor, Role
from xcfg.plugin import ScoreRequest, ScorerSpec, Settings
from xcfg.plugin.registry import load_registry
from xcfg.testing.batches import toy_batch
from xcfg.testing.materializer_tests import MaterializerTests
from xcfg_torch.materialize import THREAD_VARIABLES, TorchMaterializer
from xcfg_torch.testing.play import load

Cases = Mapping[str, Mapping[str, Any]]
"""Knob to what its class has besides: ``values``, and where they are needed ``unsupported`` and ``beside``."""

SHARED: Cases = MappingProxyType(
    {
        "training.compute_dtype": {"values": {"float32": "float32", "bfloat16": "bfloat16"}},
        "training.attention_backend": {"values": {"sdpa": "sdpa", "eager": "eager", None: None}},
        "training.output_dtype": {"values": {"float32": "float32", "bfloat16": "bfloat16", None: None}},
        "training.compile": {"values": {False: False}},
        "batch.size": {"values": {1: 1, 3: 3}},
        "batch.micro_size": {"values": {1: 1, 2: 2, None: None}},
        "layout.padding_side": {"values": {"left": "left", "right": "right"}},
        "layout.position_ids": {
            "values": {"sequential": "sequential", "padded": "padded"},
            "beside": {"layout.padding_side": "left"},
        },
        "execution.threads": {"values": {1: 1, 2: 2}},
        "logp.backend": {"values": {"production": "production"}},
        "logp.deterministic": {"values": {False: False, True: True}},
        "logp.reduction_policy": {"values": {"native": "native"}},
        "torch.device": {"values": {"cpu": "cpu"}},
        "layout.vocab_padding": {"values": {1: 1}, "unsupported": (128,)},
        "layout.packing": {"values": {False: False}, "unsupported": (True,)},
        "logp.tp_layout": {"values": {"full-vocabulary": "full-vocabulary"}, "unsupported": ("vocab-parallel",)},
        "training.tensor_parallel_size": {"values": {1: 1}, "unsupported": (2,)},
        "training.context_parallel_size": {"values": {1: 1}, "unsupported": (2,)},
        "training.world_size": {"values": {1: 1}},
    }
)
"""The knobs that torch training scorers have in common, where one rank can do nothing else than the baseline."""
RANKS: Cases = MappingProxyType(
    {"execution.collective": {"values": {"gloo": "gloo", None: "gloo"}, "unsupported": ("nccl",)}}
)
"""The knob that scorers launched on ranks have besides, on a CPU."""


class OnOneRank(MaterializerTests):
    """Subclass for a scorer, and hand the subclass to :func:`classes`; its tests need a fixture ``checkpoint``.

    ``scorer``: the scorer's class. ``materializer``: that of its materializer. ``rows``: its descriptors.
    ``baseline``: every other knob's value; ``beside``: what has to differ from it for a knob to show.
    """

    scorer: ClassVar[type]
    materializer: ClassVar[type[TorchMaterializer]]
    rows: ClassVar[Sequence[MaterializerDescriptor]]
    baseline: ClassVar[Mapping[str, Json]]
    beside: ClassVar[Mapping[str, Json]] = {}
    role: ClassVar[Role] = Role.TRAINING

    @pytest.fixture(autouse=True)
    def _tiny(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint

    def batch(self) -> TokenBatch:
        """The tokens that are scored."""
        return toy_batch(256)

    def make_materializer(self) -> TorchMaterializer:
        """A new one."""
        return self.materializer()

    @contextmanager
    def running(self, settings: Settings) -> Iterator[Any]:
        """The scorer, built and asked as the baseline says but for the knob under test."""
        draft = Settings()
        for knob, value in {**self.baseline, **self.beside}.items():
            if knob != self.knob.name:
                self.make_materializer().apply(knob, value, draft)
        spec = ScorerSpec(
            role=self.role,
            checkpoint=self.checkpoint,
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine={**draft.engine, **settings.engine},
        )
        scorer = self.scorer()
        _as_a_new_process({**draft.env, **settings.env})
        try:
            scorer.open(spec)
            backend = load("xcfg_kernels.production:Production")()
            with backend.bind(scorer.kernel_request("selected_logprob", {})) as bound:
                request = ScoreRequest(
                    settings={**draft.request, **settings.request}, operators={"selected_logprob": bound}
                )
                scorer.score(self.batch(), request)
                yield scorer.live
        finally:
            scorer.close()


def classes(base: type[OnOneRank], cases: Cases) -> dict[str, type[OnOneRank]]:
    """For each knob a test class below ``base`` that pytest collects under its key."""
    knobs, rows = load_registry().knobs(), {row.knob: row for row in base.rows}
    made = {}
    for knob, members in cases.items():
        name = f"{base.__name__.removeprefix('_')}_{knob.replace('.', '_')}"
        spec = {"role": base.role.value, "checkpoint": "", "knobs": {**base.baseline, **members.get("beside", {})}}
        known = {"knob": knobs[knob], "descriptor": rows[knob], "probe_spec": spec, "__module__": base.__module__}
        made[f"Test{name}"] = type(f"Test{name}", (base,), {**known, **members})
    return made


def _as_a_new_process(variables: Mapping[str, str]) -> None:
    """What torch makes of the variables of threads where a process starts with them; the caller sets it back."""
    import torch

    (threads,) = {int(variables[name]) for name in THREAD_VARIABLES}
    torch.set_num_threads(threads)

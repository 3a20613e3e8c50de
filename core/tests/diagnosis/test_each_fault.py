from __future__ import annotations

import numpy as np
import pytest

from xcfg.diagnosis.diagnose import diagnose
from xcfg.diagnosis.kinds import KINDS

from .drawn import text
from .faults import CLEAN, FAULTS

SHAPES = [(24, 96, "bfloat16"), (40, 60, "float16"), (14, 240, "float32")]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", SHAPES, ids=[dtype for *_, dtype in SHAPES])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_first_with_its_class(name: str, shape: tuple[int, int, str], seed: int) -> None:
    rows, tokens, dtype = shape
    rng = np.random.default_rng([seed, rows])
    first = diagnose(FAULTS[name](rng, text(rng, rows, tokens, dtype=dtype))).signatures[0]
    kind = name.partition(",")[0]
    assert first.kind == kind
    assert (first.source_class, first.subclass) == (KINDS[kind].source_class, KINDS[kind].subclass)
    assert first.advice and first.evidence and first.confidence in ("high", "medium", "low")
    assert 0.0 <= first.explained <= 1.0


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("name", CLEAN)
def test_clean_tokens_are_given_no_fault(name: str, dtype: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng([seed, 77])
        rows, tokens = [(24, 96), (3, 200), (60, 20), (1, 300)][seed % 4]
        found = diagnose(CLEAN[name](rng, text(rng, rows, tokens, vocabulary=40, dtype=dtype)))
        assert [item.kind for item in found.signatures] == ["floor"], seed


def test_classes_are_those_of_the_taxonomy() -> None:
    from xcfg.analyzer.taxonomy import NONE, UNRESOLVED
    from xcfg.model.knob import SourceClass

    known = {*(item.value for item in SourceClass), NONE, UNRESOLVED}
    assert {kind.source_class for kind in KINDS.values()} <= known
    logical = {kind.subclass for kind in KINDS.values() if kind.source_class == "logical"}
    assert logical == {
        "tokens-and-masks",
        "positions",
        "weights-and-version",
        "sampling-semantics",
        "cache-state",
        "observation",
    }

"""Builders of recorded sides, and both sides judged in a scratch folder of their own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from xcfg.comparator.recorded.compare import Terms, compare_recorded
from xcfg.comparator.worst import worst_tokens
from xcfg.model.recorded import Record


def make_record(id="a", logprobs=(-1.0, -2.0, -3.0), *, ids=None, mask=None, dtype="float32", wide=False, **fields):
    """One sequence; its token ids count from 10 and its logprobs are float32, float64 where ``wide``."""
    logprobs = np.array(logprobs, dtype=np.float64 if wide else np.float32)
    arrays = {name: np.array(fields.pop(name)) for name in ("prompt_ids", "position_ids") if name in fields}
    return Record(
        id=id,
        response_ids=np.arange(10, 10 + len(logprobs)) if ids is None else np.array(ids, dtype=np.int64),
        logprobs=logprobs,
        mask=None if mask is None else np.array(mask, dtype=bool),
        dtype=dtype,
        place=fields.pop("place", f"{id} line"),
        **arrays,
        **fields,
    )


@pytest.fixture(scope="session")
def record():
    """The builder of records."""
    return make_record


@pytest.fixture(scope="session")
def judge(contract):
    """Compares two lists of records: the comparison, or with ``tokens`` so many worst tokens beside it."""

    def call(rollout, training, *, tokens=None, **terms):
        terms = {"contract": contract, **terms}
        with tempfile.TemporaryDirectory() as scratch:
            found = compare_recorded(rollout, training, Terms(**terms), Path(scratch))
            if tokens is None:
                return found.comparison
            return found.comparison, worst_tokens(found.pairs, tokens)

    return call

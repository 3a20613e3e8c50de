"""Logprobs that a framework did not compute: refused, with the setting that makes it compute them."""

from __future__ import annotations

import numpy as np

from xcfg.errors import ArtifactError
from xcfg.importers.values import logprobs
from xcfg.model.recorded import Row


def measured(row: Row, name: str, hint: str) -> np.ndarray:
    """(n,) float32 or float64 logprobs of field ``name``; ``hint`` says how the framework comes to write them.

    Raises:
        ArtifactError: the field is absent, null, or not a flat list of numbers.
    """
    value = row.fields.get(name)
    if value is None:
        raise unmeasured(row, name, hint)
    return logprobs(value, row, name)


def unmeasured(row: Row, name: str, hint: str) -> ArtifactError:
    """The refusal of a row whose field ``name`` is absent or null."""
    state = "null" if name in row.fields else "missing"
    return ArtifactError(f"{name} is {state}, so this side has no logprobs here", where=row.place, hint=hint)

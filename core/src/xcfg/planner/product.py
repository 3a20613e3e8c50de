"""Every combination of the values of all axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from xcfg.model.json import Json
from xcfg.planner.draft import Draft


def product(axes: Mapping[str, Sequence[Json]], baseline: Draft) -> Iterator[Draft]:
    """The drafts one after the other, the last axis varying fastest; without axes there is none."""
    if not axes:
        return
    for values in itertools.product(*axes.values()):
        yield evolve(baseline, name="", own=dict(zip(axes, values, strict=True)))


def product_count(axes: Mapping[str, Sequence[Json]]) -> int:
    """How many drafts there are, without making them."""
    return math.prod(len(values) for values in axes.values()) if axes else 0

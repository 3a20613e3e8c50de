"""Each value of each axis by itself, everything else as in the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from xcfg.model.json import Json
from xcfg.planner.draft import Draft


def one_at_a_time(axes: Mapping[str, Sequence[Json]], baseline: Draft) -> Iterator[Draft]:
    """The drafts in the order of the file."""
    for knob, values in axes.items():
        for value in values:
            yield evolve(baseline, name="", own={knob: value}, axis=knob)

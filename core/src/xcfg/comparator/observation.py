"""Signs that a side's logprobs were padded or stored too coarsely: judged all the same, with a finding."""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from xcfg.comparator.blocks import Block, NamedPairs
from xcfg.comparator.scope import segments
from xcfg.model.knob import SourceClass
from xcfg.model.result import Finding

ZERO_RUN = 3
"""Exact 0.0 in a row from which a finding is made (measurement contract, recorded defects)."""
DISTINCT_VALUES = 3
"""Distinct non-zero logprobs from which "all fit a coarser dtype" is no coincidence: a float32 fits bfloat16 by
chance once in 2**16."""
SIDES = ("rollout", "train")
_NAMES = {"rollout": "rollout", "train": "training"}


@frozen
class Stored:
    """A narrow format: name, stored significand bits, smallest normal exponent."""

    dtype: str
    bits: int
    lowest_exponent: int


STORED = (Stored("bfloat16", 7, -126), Stored("float16", 10, -14))
"""The coarser formats, coarsest first."""


def observation_findings(pairs: NamedPairs, limit: float | None) -> list[Finding]:
    """Findings about the stored logprobs of both sides.

    ``limit`` (nats) is the judging threshold, if any.
    """
    zeros = {side: Zeros() for side in SIDES}
    coarse = {side: Coarse() for side in SIDES}
    for block in pairs.blocks():
        for side in SIDES:
            logp = getattr(block, side)
            zeros[side].add(block, logp)
            coarse[side].add(logp)
    found = [(zeros[side].finding(_NAMES[side], pairs), coarse[side].finding(_NAMES[side], limit)) for side in SIDES]
    return [finding for of_side in found for finding in of_side if finding is not None]


class Zeros:
    """Runs of exact zeros over adjacent positions of one sequence."""

    def __init__(self) -> None:
        """None seen."""
        self.runs, self.longest, self.tokens = 0, 0, 0
        self.first: tuple[int, int] | None = None

    def add(self, block: Block, logp: np.ndarray) -> None:
        """Take in the logprobs of one side of a block."""
        at = np.flatnonzero(logp == 0.0)
        if len(at) < ZERO_RUN:
            return
        row = np.searchsorted(block.starts, at, side="right") - 1
        # consecutive zeros share (place in the array - order of the zero), the position and the row of a run
        key = np.stack([at - np.arange(len(at)), block.position[at] - np.arange(len(at)), row])
        label = np.concatenate([[0], np.cumsum((key[:, 1:] != key[:, :-1]).any(axis=0))])
        starts, lengths = segments(label)
        long = lengths >= ZERO_RUN
        if not long.any():
            return
        if self.first is None:
            first = starts[np.argmax(long)]
            self.first = (int(block.rows[row[first]]), int(block.position[at[first]]))
        self.runs += int(np.count_nonzero(long))
        self.longest = max(self.longest, int(lengths.max()))
        self.tokens += int(lengths[long].sum())

    def finding(self, side: str, pairs: NamedPairs) -> Finding | None:
        """The finding, if any run was long enough."""
        if self.first is None:
            return None
        row, position = self.first
        return Finding(
            source_class=SourceClass.LOGICAL.value,
            subclass="observation",
            rule="exact_zero_logprobs",
            evidence={
                "side": side,
                "runs": self.runs,
                "longest_run": self.longest,
                "tokens": self.tokens,
                "first": {"sequence": pairs.row(row).sequence, "position": position},
            },
            advice=f"{ZERO_RUN} or more {side} logprobs in a row are exactly 0.0, probability one: look for missing "
            "values padded with 0",
            confidence="medium",
        )


class Coarse:
    """Whether all logprobs are exactly representable in a dtype whose spacing at the largest exceeds the limit."""

    def __init__(self) -> None:
        """Nothing seen."""
        self._bits = np.uint64(0)
        self._distinct: set[float] = set()
        self._largest, self._smallest = 0.0, math.inf

    def add(self, logp: np.ndarray) -> None:
        """Take in the logprobs of one side of a block."""
        size = np.abs(logp)
        self._largest = max(self._largest, float(size.max()))
        if not any(self._fits(stored) for stored in STORED):
            return  # one value that fits no narrow format settles it
        wide = logp.astype(np.float64)
        self._bits |= np.bitwise_or.reduce(wide.view(np.uint64))
        filled = wide[wide != 0.0]
        if len(filled):
            self._smallest = min(self._smallest, float(np.abs(filled).min()))
        if len(self._distinct) < DISTINCT_VALUES:
            self._distinct |= set(np.unique(filled)[:DISTINCT_VALUES].tolist())

    def finding(self, side: str, limit: float | None) -> Finding | None:
        """The finding for the coarsest format that holds every value, if its spacing exceeds the limit."""
        if not limit or len(self._distinct) < DISTINCT_VALUES:
            return None
        for stored in STORED:
            step = 2.0 ** (max(math.frexp(self._largest)[1] - 1, stored.lowest_exponent) - stored.bits)
            if step > limit and self._fits(stored):
                return _coarse(side, stored, self._largest, step, limit)
        return None

    def _fits(self, stored: Stored) -> bool:
        """No float64 significand bit below the format's, and no value below its normal range."""
        dropped = np.uint64((1 << (52 - stored.bits)) - 1)
        return not self._bits & dropped and self._smallest >= 2.0**stored.lowest_exponent


def _coarse(side: str, stored: Stored, largest: float, step: float, limit: float) -> Finding:
    return Finding(
        source_class=SourceClass.LOGICAL.value,
        subclass="observation",
        rule="logprobs_coarser_than_limit",
        evidence={
            "side": side,
            "stored_dtype": stored.dtype,
            "largest_abs_logp": largest,
            "spacing": step,
            "limit": limit,
            "spacing_over_limit": step / limit,
        },
        advice=f"the {side} logprobs were rounded to {stored.dtype}: neighbouring values are {step:g} nats apart, "
        f"{step / limit:.3g} times the limit {limit:g}; record them in float32",
    )

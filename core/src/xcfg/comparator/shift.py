"""Off-by-one detector: is the drift explained by shifting one side by one token within each sequence?"""

from __future__ import annotations

import math

import numpy as np
from attrs import asdict, frozen

from xcfg.comparator.blocks import Block, Pairs
from xcfg.comparator.scope import Scope, segments
from xcfg.model.knob import SourceClass
from xcfg.model.result import Finding

SHIFTS = (-1, 1)
GAIN = 10.0
"""A shift explains the drift when mean abs(d) falls by this factor. A true off-by-one goes from nats to rounding
noise (a factor of 100 and more); logprobs of unrelated tokens are about equally far apart at every shift."""
MINIMUM_TOKENS = 8
"""Fewer compared tokens than this can fit a shift by chance."""


@frozen(kw_only=True)
class ShiftEvidence:
    """abs(d) in nats over the same rollout tokens at shift 0 and at ``shift``: train[i + shift] against rollout[i]."""

    shift: int
    tokens_compared: int
    sequences_explained: int
    sequences_compared: int
    mean_abs_at_0: float
    max_abs_at_0: float
    mean_abs_at_shift: float
    max_abs_at_shift: float
    correlation_at_0: float | None
    correlation_at_shift: float | None


def detect_shift(pairs: Pairs) -> ShiftEvidence | None:
    """The better of the shifts -1 and +1 where it explains whole sequences or all tokens together, else None.

    Only tokens whose both neighbours are active are compared, so that every shift is measured on the same tokens and
    one wrong token at an end, which a shift would drop, explains nothing.
    """
    trials = [_Trial(shift) for shift in SHIFTS]
    for block in pairs.blocks():
        here = _interior(block)
        if len(here):
            for trial in trials:
                trial.add(block, here)
    found = [evidence for trial in trials if (evidence := trial.evidence())]
    return max(found, key=lambda item: (item.sequences_explained, item.tokens_compared), default=None)


def shift_findings(pairs: Pairs) -> list[Finding]:
    """The finding of :func:`detect_shift`; it never changes a verdict."""
    evidence = detect_shift(pairs)
    if evidence is None:
        return []
    return [
        Finding(
            source_class=SourceClass.LOGICAL.value,
            subclass="tokens-and-masks",
            rule="off_by_one_shift",
            evidence=asdict(evidence),
            advice="one side reports the logprob of the neighbouring token: logits at t-1 score token t; check the "
            "label shift, the slice of the response and the roll over padding of that side",
        )
    ]


class _Trial:
    """One shift, over all tokens and over those of the sequences that it explains."""

    def __init__(self, shift: int) -> None:
        self.shift = shift
        self.every, self.explained = Scope(), Scope()
        self.sequences, self.sequences_explained = 0, 0

    def add(self, block: Block, here: np.ndarray) -> None:
        rollout = block.rollout[here].astype(np.float64)
        plain, moved = (block.train[here + step].astype(np.float64) for step in (0, self.shift))
        starts, lengths = segments(np.searchsorted(block.starts, here, side="right"))
        with np.errstate(over="ignore"):  # a sum beyond the float range explains nothing
            at_0 = np.add.reduceat(np.abs(plain - rollout), starts)
            at_shift = np.add.reduceat(np.abs(moved - rollout), starts)
            explained = (lengths >= MINIMUM_TOKENS) & (at_0 > 0) & (at_0 < np.inf) & (at_shift * GAIN <= at_0)
        self.sequences += len(starts)
        self.sequences_explained += int(np.count_nonzero(explained))
        self.every.add(rollout, plain, moved)
        if explained.any():
            inside = np.repeat(explained, lengths)
            self.explained.add(rollout[inside], plain[inside], moved[inside])

    def evidence(self) -> ShiftEvidence | None:
        every, scope = self.every, self.explained
        if every.count < MINIMUM_TOKENS:
            return None
        if not self.sequences_explained:
            if not (0 < every.plain.total < math.inf and every.moved.total * GAIN <= every.plain.total):
                return None
            scope = every
        return ShiftEvidence(
            shift=self.shift,
            tokens_compared=scope.count,
            sequences_explained=self.sequences_explained,
            sequences_compared=self.sequences,
            mean_abs_at_0=scope.plain.total / scope.count,
            max_abs_at_0=scope.plain.largest,
            mean_abs_at_shift=scope.moved.total / scope.count,
            max_abs_at_shift=scope.moved.largest,
            correlation_at_0=scope.plain.correlation(),
            correlation_at_shift=scope.moved.correlation(),
        )


def _interior(block: Block) -> np.ndarray:
    """Places of tokens whose left and right neighbour in the block are the adjacent tokens of the same sequence."""
    adjacent = block.position[1:] == block.position[:-1] + 1
    adjacent[block.starts[1:] - 1] = False
    return np.flatnonzero(adjacent[1:] & adjacent[:-1]) + 1

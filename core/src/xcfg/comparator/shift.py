"""Off-by-one detector: is the drift explained by shifting one side by one token within each sequence?"""

from __future__ import annotations

import numpy as np
from attrs import asdict, frozen

from xcfg.comparator.drift import pearson, segments
from xcfg.model.knob import SourceClass
from xcfg.model.outcome import PairedTokens
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


def detect_shift(tokens: PairedTokens) -> ShiftEvidence | None:
    """The better of the shifts -1 and +1 where it explains whole sequences or all tokens together, else None.

    Only tokens whose both neighbours are active are compared, so that every shift is measured on the same tokens and
    one wrong token at an end, which a shift would drop, explains nothing. Tokens are in (sequence, position) order.
    """
    here = _interior(tokens)
    if len(here) < MINIMUM_TOKENS:
        return None
    found = [evidence for shift in SHIFTS if (evidence := _at(tokens, here, shift))]
    return max(found, key=lambda item: (item.sequences_explained, item.tokens_compared), default=None)


def shift_findings(tokens: PairedTokens) -> list[Finding]:
    """The finding of :func:`detect_shift`; it never changes a verdict."""
    evidence = detect_shift(tokens)
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


def _at(tokens: PairedTokens, here: np.ndarray, shift: int) -> ShiftEvidence | None:
    rollout = tokens.rollout_logp[here].astype(np.float64)
    plain, moved = (tokens.train_logp[here + step].astype(np.float64) for step in (0, shift))
    at_0, at_shift = np.abs(plain - rollout), np.abs(moved - rollout)
    starts, lengths = segments(tokens.sequence[here])
    sum_0, sum_shift = np.add.reduceat(at_0, starts), np.add.reduceat(at_shift, starts)
    explained = (lengths >= MINIMUM_TOKENS) & (sum_0 > 0) & (sum_shift * GAIN <= sum_0)
    if explained.any():
        scope = np.repeat(explained, lengths)
    elif 0 < at_shift.sum() * GAIN <= at_0.sum() or at_shift.sum() == 0 < at_0.sum():
        scope = np.ones(len(here), dtype=bool)
    else:
        return None
    return ShiftEvidence(
        shift=shift,
        tokens_compared=int(scope.sum()),
        sequences_explained=int(explained.sum()),
        sequences_compared=len(starts),
        mean_abs_at_0=float(at_0[scope].mean()),
        max_abs_at_0=float(at_0[scope].max()),
        mean_abs_at_shift=float(at_shift[scope].mean()),
        max_abs_at_shift=float(at_shift[scope].max()),
        correlation_at_0=pearson(rollout[scope], plain[scope]),
        correlation_at_shift=pearson(rollout[scope], moved[scope]),
    )


def _interior(tokens: PairedTokens) -> np.ndarray:
    """Places of tokens whose left and right neighbour in the array are the adjacent tokens of the same sequence."""
    adjacent = (tokens.sequence[1:] == tokens.sequence[:-1]) & (tokens.position[1:] == tokens.position[:-1] + 1)
    return np.flatnonzero(adjacent[1:] & adjacent[:-1]) + 1

"""Signs that a side's logprobs were padded or stored too coarsely: judged all the same, with a finding."""

from __future__ import annotations

import math

import numpy as np

from xcfg.comparator.drift import segments
from xcfg.model.knob import SourceClass
from xcfg.model.outcome import PairedTokens
from xcfg.model.result import Finding

ZERO_RUN = 3
"""Exact 0.0 in a row from which a finding is made (measurement contract, recorded defects)."""
DISTINCT_VALUES = 3
"""Distinct non-zero logprobs from which "all fit a coarser dtype" is no coincidence: a float32 fits bfloat16 by
chance once in 2**16."""
_STORED = (("bfloat16", 7, -126), ("float16", 10, -14))
"""Name, stored significand bits and smallest normal exponent of the coarser formats, coarsest first."""


def observation_findings(tokens: PairedTokens, limit: float | None) -> list[Finding]:
    """Findings about the stored logprobs of both sides; ``limit`` (nats) is the judging threshold, if any."""
    found: list[Finding] = []
    for side, logp in (("rollout", tokens.rollout_logp), ("training", tokens.train_logp)):
        found += _zero_runs(side, tokens, logp)
        found += _coarse(side, logp, limit)
    return found


def _zero_runs(side: str, tokens: PairedTokens, logp: np.ndarray) -> list[Finding]:
    """Runs of exact zeros over adjacent positions of one sequence."""
    at = np.flatnonzero(logp == 0.0)
    if len(at) < ZERO_RUN:
        return []
    # consecutive zeros share (place in the array - order of the zero), the position and the sequence of a run
    key = np.stack([at - np.arange(len(at)), tokens.position[at] - np.arange(len(at)), tokens.sequence[at]])
    label = np.concatenate([[0], np.cumsum((key[:, 1:] != key[:, :-1]).any(axis=0))])
    starts, lengths = segments(label)
    long = lengths >= ZERO_RUN
    if not long.any():
        return []
    first = int(at[starts[np.argmax(long)]])
    sequence = tokens.sequence_ids[int(tokens.sequence[first])]
    evidence = {
        "side": side,
        "runs": int(long.sum()),
        "longest_run": int(lengths.max()),
        "tokens": int(lengths[long].sum()),
        "first": {"sequence": sequence, "position": int(tokens.position[first])},
    }
    return [
        Finding(
            source_class=SourceClass.LOGICAL.value,
            subclass="observation",
            rule="exact_zero_logprobs",
            evidence=evidence,
            advice=f"{ZERO_RUN} or more {side} logprobs in a row are exactly 0.0, probability one: look for missing "
            "values padded with 0",
            confidence="medium",
        )
    ]


def _coarse(side: str, logp: np.ndarray, limit: float | None) -> list[Finding]:
    """All logprobs exactly representable in a dtype whose spacing at the largest of them exceeds the limit."""
    largest = float(np.max(np.abs(logp)))
    if limit is None or not limit or largest == 0.0:
        return []
    for dtype, bits, lowest_exponent in _STORED:
        step = 2.0 ** (max(math.frexp(largest)[1] - 1, lowest_exponent) - bits)
        if step > limit and _fits(logp, bits, lowest_exponent) and len(np.unique(logp[logp != 0])) >= DISTINCT_VALUES:
            evidence = {
                "side": side,
                "stored_dtype": dtype,
                "largest_abs_logp": largest,
                "spacing": step,
                "limit": limit,
                "spacing_over_limit": step / limit,
            }
            return [
                Finding(
                    source_class=SourceClass.LOGICAL.value,
                    subclass="observation",
                    rule="logprobs_coarser_than_limit",
                    evidence=evidence,
                    advice=f"the {side} logprobs were rounded to {dtype}: neighbouring values are {step:g} nats apart, "
                    f"{step / limit:.3g} times the limit {limit:g}; record them in float32",
                )
            ]
    return []


def _fits(logp: np.ndarray, bits: int, lowest_exponent: int) -> bool:
    """Whether every float32 value has no significand bits below ``bits`` (and is no denormal of the narrow format)."""
    dropped = np.uint32((1 << (23 - bits)) - 1)
    if (logp.view(np.uint32) & dropped).any():
        return False
    size = np.abs(logp)
    return bool((size[size != 0] >= 2.0**lowest_exponent).all())

"""From recorded pairs to signatures: every detector, the best first, the rest on what it leaves."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.detectors import Detector, candidates
from xcfg.diagnosis.exact import above_zero, padded_zero, truncated
from xcfg.diagnosis.floor import noise_floor
from xcfg.diagnosis.found import Found, kept
from xcfg.diagnosis.kinds import KINDS, PREFERENCE
from xcfg.diagnosis.notes import notes
from xcfg.diagnosis.observed import Observed
from xcfg.diagnosis.pairing import pairing
from xcfg.diagnosis.regions import beyond
from xcfg.diagnosis.shift import shift
from xcfg.diagnosis.signature import Diagnosis, Signature
from xcfg.diagnosis.view import View
from xcfg.model.json import Json

MINIMUM_TOKENS = 8
"""Fewer tokens than this fit anything."""
MOST = 3
TIE = (15.0, 0.01)
"""Nats, and part of the best one's, that a candidate may lie behind and still tie with it."""
LEFT = 0.05
"""What is left after the first fault is looked at where it is more than this part of the first drift."""
SCATTERED = 0.05
"""Drifting tokens without a pattern that are more than this part of all are not the noise's own outliers."""
LEVELS = {"stale-weights", "scoring-path", "proportional", "temperature", "kept-mass", "processed", "monotone"}
"""What a fit that is known to be rough leaves looks like one of these, and is not."""
STORED = {"low-precision-storage"}
"""Read off the recorded values, not off what a formula leaves of them."""
VALUES: tuple[Detector, ...] = (truncated, padded_zero, above_zero)
"""Values that no engine computes; the rest is looked at without them."""
MAKES = {
    "scoring-path": ("padded-zero",),
    "constant-offset": ("above-zero",),
    "temperature": ("above-zero",),
    "monotone": ("above-zero",),
    "kept-mass": ("above-zero", "padded-zero"),
}
"""What moves values to 0 or above it."""
FEW = 32
"""Below this many tokens no confidence is high."""


def diagnose(observed: Observed) -> Diagnosis:
    """What kind of fault the pairs look like. Never raises for finite numbers, and never changes a verdict."""
    tokens = len(observed.position)
    if tokens < MINIMUM_TOKENS:
        few = f"{tokens} tokens are too few to tell: at least {MINIMUM_TOKENS} are needed"
        return Diagnosis(signatures=[_plain("unknown", {"tokens": tokens}, "low")], tokens=tokens, too_few=few)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        return _diagnosed(observed)


def _diagnosed(observed: Observed) -> Diagnosis:
    first = View(observed=observed, floor=noise_floor(observed))
    values = [item for detector in VALUES if (item := detector(first))]
    if values and (shift(first) or pairing(first)):
        values = []  # a side that is out of step has its own sure tokens where the other has unsure ones
    rest = observed
    if values:
        rest = kept(observed, ~np.any([item.tokens for item in values], axis=0))
    named = _in_turn(rest) if len(rest.position) >= MINIMUM_TOKENS else []
    if named:
        values = [item for item in values if item.kind not in MAKES.get(named[0].kind, ())]
    told = [(item.gain, _signature(item, first)) for item in values]
    told += [(float(item.evidence["nats"]), item) for item in named]
    signatures = [item for _, item in sorted(told, key=lambda pair: -pair[0])] or [_unnamed(first)]
    return Diagnosis(
        signatures=signatures[:MOST],
        tokens=first.tokens,
        floor=first.floor.evidence(),
        notes=notes(observed, signatures, first.floor),
    )


def _in_turn(observed: Observed) -> list[Signature]:
    """The best, then the best of what it leaves."""
    view = first = View(observed=observed, floor=noise_floor(observed))
    named: list[Signature] = []
    known: set[str] = set()
    while len(named) < MOST:
        item = best(view, known)
        if item is None:
            break
        named.append(_signature(item, view))
        known |= {item.kind} | (LEVELS if item.rough else set()) | (set() if item.left is None else STORED)
        rest = item.without(view)
        if len(rest.position) < MINIMUM_TOKENS * 2:
            break
        view = View(observed=rest, floor=noise_floor(rest, bounded=not item.rough))
        if view.excess < LEFT * first.excess:
            break
    return named


def best(view: View, known: set[str]) -> Found | None:
    """The candidate that wins most; of those that tie, the one that is preferred."""
    found = [item for item in candidates(view) if item.kind not in known]
    if known:  # after the first, only what would have been said of clean tokens too
        found = [
            item for item in found if item.kind not in ("stale-weights", "sequences") or item.explained(view) > 0.5
        ]
    if not found:
        return None
    most = max(item.gain for item in found)
    tie = most - TIE[0] - TIE[1] * most
    return min((item for item in found if item.gain >= tie), key=lambda item: PREFERENCE[item.kind])


def _signature(item: Found, view: View) -> Signature:
    kind = KINDS[item.kind]
    confidence = item.confidence
    share = item.explained(view)
    if view.tokens < FEW and confidence == "high":
        confidence = "medium"
    return Signature(
        kind=item.kind,
        source_class=kind.source_class,
        subclass=kind.subclass,
        confidence=confidence,
        explained=share,
        evidence={**item.evidence, "nats": item.gain},
        advice=kind.advice,
    )


def _unnamed(view: View) -> Signature:
    everything = np.ones(view.tokens, dtype=bool)
    hot = float(view.hot.mean())
    above = beyond(view, everything)
    far = float(np.mean(view.size > 10.0 * view.floor.typical * 3.0))
    evidence: dict[str, Json] = {
        "drifting_tokens": hot,
        "upper_quartile_over_bound_of_dtype": above,
        "far_above_bound": far,
        "median_over_floor": float(np.median(view.z)),
        "max_over_floor": float(view.z.max()),
    }
    if above > 1.5 or far > SCATTERED:
        return _plain("unknown", evidence, "low")
    return _plain("floor", evidence, "high" if above < 1.0 and far < 0.01 else "medium")


def _plain(name: str, evidence: dict[str, Json], confidence: str) -> Signature:
    kind = KINDS[name]
    return Signature(
        kind=name,
        source_class=kind.source_class,
        subclass=kind.subclass,
        confidence=confidence,
        explained=0.0,
        evidence=evidence,
        advice=kind.advice,
    )

"""What executing a case gave, and when that is trusted."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from attrs import field, frozen

from xcfg.analyzer.search.problem import Alignment
from xcfg.model.json import freeze
from xcfg.model.status import Status


class Verdict(Enum):
    """A trusted outcome. Only ``PASS`` makes a set an answer.

    ``UNSETTLED``: near the threshold, and repeats disagree; it does not pass reliably. ``UNSUPPORTED``: this machine
    cannot build the case. ``UNKNOWN``: something broke, another attempt may differ; no claim rests on it.
    """

    PASS = "pass"
    FAIL = "fail"
    UNSETTLED = "unsettled"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


_FAILS = (Status.INVALID_IDENTITY, Status.NON_FINITE)
"""Statuses without a number that follow from the configurations: the contract does not hold."""

_CANNOT_BE_BUILT = (Status.UNSUPPORTED, Status.INVALID_PROVENANCE)
"""Statuses of a case that this machine does not run as it was asked for."""

_SCORED = (Status.PASS, Status.FAIL, Status.NO_THRESHOLD, Status.ZERO_ACTIVE_TOKENS, *_FAILS)
"""Statuses that only a comparison of two side runs gives: both are on disk."""


@frozen(kw_only=True)
class Outcome:
    """One execution of a case.

    ``within`` is ``within_baseline_row``: whether ``max_abs_dlogp`` (nats) is within ``threshold``, the limit on the
    row of the production dtype. None takes the answer from ``status``.
    """

    status: Status
    within: bool | None = None
    max_abs_dlogp: float | None = None
    threshold: float | None = None
    reason: str = ""

    @property
    def scored(self) -> bool:
        """Whether both side runs exist, so that each forms further cases for nothing."""
        return self.status in _SCORED

    @property
    def verdict(self) -> Verdict:
        """What this execution says by itself."""
        if self.status.judged or (self.status is Status.NO_THRESHOLD and self.within is not None):
            passes = self.status is Status.PASS if self.within is None else self.within
            return Verdict.PASS if passes else Verdict.FAIL
        if self.status in _FAILS:
            return Verdict.FAIL
        return Verdict.UNSUPPORTED if self.status in _CANNOT_BE_BUILT else Verdict.UNKNOWN

    def near(self, margin: float) -> bool:
        """Whether the number is nearer to the threshold than ``margin`` times the threshold."""
        if self.max_abs_dlogp is None or self.threshold is None:
            return False
        return abs(self.max_abs_dlogp - self.threshold) < margin * self.threshold


@frozen(kw_only=True)
class Observed:
    """An alignment that was executed and its outcome: what a search resumes from. Repeats are entries of their own."""

    aligned: Alignment = field(converter=freeze)
    outcome: Outcome


def trusted(runs: Sequence[Outcome], margin: float, repeats: int) -> Verdict | None:
    """The verdict of all executions of one case; None where there is none yet or it has to be repeated.

    Judged executions that disagree are unsettled. Where they agree, and one of them is near the threshold, as many
    as 1 + ``repeats`` have to. A repeat that broke is not repeated: with too few others the case is unknown. An
    execution that broke counts else only where no other was judged.
    """
    verdicts = {run.verdict for run in runs}
    judged = verdicts & {Verdict.PASS, Verdict.FAIL}
    if len(judged) == 2:
        return Verdict.UNSETTLED
    if not judged:
        return next((kind for kind in (Verdict.UNSUPPORTED, Verdict.UNKNOWN) if kind in verdicts), None)
    agreeing = [run for run in runs if run.verdict in judged]
    if any(run.near(margin) for run in agreeing) and len(agreeing) < 1 + repeats:
        return None if len(runs) < 1 + repeats else Verdict.UNKNOWN
    return judged.pop()

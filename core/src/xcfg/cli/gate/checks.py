"""What each pinned case has to give, and what it gave."""

from __future__ import annotations

from attrs import frozen

from xcfg.analyzer.search.outcome import Outcome
from xcfg.cli.gate.file import ANSWER, PART, PRODUCTION, REFERENCE, UNRELATED, PinnedCase
from xcfg.exitcodes import ExitCode, worst
from xcfg.model.status import Status

_WITHIN = {ANSWER: True, REFERENCE: True, PRODUCTION: False, PART: False}
_SEARCH = "search again with --gate and pin what it finds"
_ADVICE = {
    ANSWER: "the pinned alignment no longer passes: look at what changed in the engines, or search again with --gate",
    REFERENCE: "everything aligned no longer passes: mend the base scoring path before anything else",
    PRODUCTION: f"production passes with nothing aligned: {_SEARCH}",
    PART: f"a part of the pinned alignment passes by itself: {_SEARCH}",
    UNRELATED: f"a knob that changed nothing changes the verdict now: {_SEARCH}",
}


@frozen(kw_only=True)
class Check:
    """One pinned case: ``expected`` is whether it has to be within the production row."""

    case: PinnedCase
    expected: bool
    outcome: Outcome

    @property
    def held(self) -> bool:
        """Whether the case gave what it has to."""
        return self.outcome.within is self.expected

    @property
    def status(self) -> str:
        """``pass`` where it held, ``fail`` where its number says otherwise, else what kept it from a number."""
        if self.held:
            return Status.PASS.value
        return Status.FAIL.value if self.outcome.within is not None else self.outcome.status.value

    @property
    def code(self) -> ExitCode:
        """The exit code of that."""
        return Status(self.status).exit_code

    @property
    def advice(self) -> str:
        """What to do about it; empty where there is nothing to do."""
        if self.held:
            return ""
        return self.outcome.reason if self.outcome.within is None else _ADVICE[self.case.role]


def expected(case: PinnedCase) -> bool:
    """What a pinned case has to give: an unrelated one what it gave, each other what its role says."""
    return _WITHIN[case.role] if case.role in _WITHIN else bool(case.within)


def ending(checks: list[Check]) -> tuple[str, ExitCode]:
    """Status and exit code of all checks."""
    code = worst(check.code for check in checks)
    return next(check.status for check in checks if check.code is code), code

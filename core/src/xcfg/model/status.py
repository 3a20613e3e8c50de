"""Statuses of a judged case and the exit code each one belongs to."""

from __future__ import annotations

from enum import StrEnum

from xcfg.exitcodes import PRECEDENCE, ExitCode


class Status(StrEnum):
    """The outcome of one case; only ``PASS`` is a pass."""

    PASS = "pass"
    FAIL = "fail"
    ZERO_ACTIVE_TOKENS = "zero_active_tokens"
    NON_FINITE = "non_finite"
    NO_THRESHOLD = "no_threshold"
    INVALID_IDENTITY = "invalid_identity"
    INVALID_PROVENANCE = "invalid_provenance"
    INVALID_ARTIFACT = "invalid_artifact"
    UNSUPPORTED = "unsupported"
    LAUNCH_ERROR = "launch_error"
    ENVIRONMENT_ERROR = "environment_error"
    SCORER_ERROR = "scorer_error"
    TIMEOUT = "timeout"

    @property
    def judged(self) -> bool:
        """True where the numbers were compared with a threshold."""
        return self in (Status.PASS, Status.FAIL)

    @property
    def exit_code(self) -> ExitCode:
        """The group this status belongs to."""
        return _EXIT[self]


_EXIT = {
    Status.PASS: ExitCode.PASS,
    Status.FAIL: ExitCode.DRIFT,
    Status.UNSUPPORTED: ExitCode.UNSUPPORTED,
    **dict.fromkeys(
        (Status.LAUNCH_ERROR, Status.ENVIRONMENT_ERROR, Status.SCORER_ERROR, Status.TIMEOUT), ExitCode.EXECUTION
    ),
    **dict.fromkeys(
        (
            Status.ZERO_ACTIVE_TOKENS,
            Status.NON_FINITE,
            Status.NO_THRESHOLD,
            Status.INVALID_IDENTITY,
            Status.INVALID_PROVENANCE,
            Status.INVALID_ARTIFACT,
        ),
        ExitCode.INVALID,
    ),
}

INVALID_PRECEDENCE = (
    Status.INVALID_ARTIFACT,
    Status.INVALID_PROVENANCE,
    Status.INVALID_IDENTITY,
    Status.NON_FINITE,
    Status.ZERO_ACTIVE_TOKENS,
    Status.NO_THRESHOLD,
)
"""Which invalidity is named when several apply to one comparison."""


def severity(status: Status) -> tuple[int, int]:
    """Orders statuses: the larger is the worse, by the precedence of exit codes, then of invalidities."""
    rank = len(INVALID_PRECEDENCE) - INVALID_PRECEDENCE.index(status) if status in INVALID_PRECEDENCE else 0
    return (-PRECEDENCE.index(status.exit_code), rank)

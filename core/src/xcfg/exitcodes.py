"""Process exit codes of the command line and their order of precedence."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What a finished command tells the shell."""

    PASS = 0
    DRIFT = 1
    USAGE = 2
    INTERNAL = 3
    PLUGIN = 4
    NOTHING = 5
    INVALID = 6
    EXECUTION = 7
    UNSUPPORTED = 8
    INTERRUPTED = 130


PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.INTERNAL,
    ExitCode.PLUGIN,
    ExitCode.USAGE,
    ExitCode.EXECUTION,
    ExitCode.INVALID,
    ExitCode.UNSUPPORTED,
    ExitCode.NOTHING,
    ExitCode.DRIFT,
    ExitCode.PASS,
)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The code that wins when several apply; ``NOTHING`` when there are none."""
    present = set(codes)
    return next((code for code in PRECEDENCE if code in present), ExitCode.NOTHING)

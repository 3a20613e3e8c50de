"""Every way a command can fail, turned into one message and one exit code."""

from __future__ import annotations

import errno
import json
import sys
import traceback
from collections.abc import Sequence

import click

from xcfg.errors import EnvironmentFault, Fault, XcfgError
from xcfg.exitcodes import ExitCode


def report_failure(error: BaseException, arguments: Sequence[str]) -> int:
    """Print ``error`` (as one JSON document under ``--json``) and return the exit code."""
    code, faults = classify(error)
    if "--json" in arguments:
        document = {
            "schema": "xcfg.error/1",
            "status": "error",
            "code": int(code),
            "errors": [{"where": item.where, "message": item.message, "hint": item.hint} for item in faults],
        }
        click.echo(json.dumps(document, ensure_ascii=False))
    elif isinstance(error, click.ClickException):
        error.show()
    else:
        for item in faults:
            click.echo(f"xcfg: {item}", err=True)
    if code is ExitCode.INTERNAL or ({"-v", "--verbose"} & set(arguments)):
        traceback.print_exception(error, file=sys.stderr)
    return int(code)


def classify(error: BaseException) -> tuple[ExitCode, tuple[Fault, ...]]:
    """The exit code of an exception and what to say about it."""
    if isinstance(error, XcfgError):
        return error.exit_code, error.faults
    if isinstance(error, click.exceptions.Exit):
        return ExitCode(error.exit_code), ()
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return ExitCode.INTERRUPTED, (
            Fault(message="interrupted; finished side runs are kept", hint="run again to resume"),
        )
    if isinstance(error, click.ClickException):
        return ExitCode.USAGE, (Fault(message=error.format_message(), where="command line"),)
    if isinstance(error, SystemExit):
        return _system_exit(error), ()
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        fault = Fault(
            message="no space left on device", where=str(error.filename or ""), hint="free space and run again"
        )
        return EnvironmentFault.exit_code, (fault,)
    return ExitCode.INTERNAL, (Fault(message=f"internal error: {type(error).__name__}: {error}"),)


def _system_exit(error: SystemExit) -> ExitCode:
    return next((code for code in ExitCode if code == error.code), ExitCode.INTERNAL)

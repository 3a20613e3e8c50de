"""Every way a command can fail, turned into one message and one exit code."""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise

import click

from xcfg.errors import EnvironmentFault, Fault, XcfgError
from xcfg.exitcodes import ExitCode

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NO_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
_OFF = ("", "0", "f", "false", "n", "no", "off")
"""What click takes for a switch that is off."""


def report_failure(error: BaseException, arguments: Sequence[str]) -> int:
    """Print ``error`` (as one JSON document under ``--json``) and return the exit code."""
    code, faults = classify(error)
    try:
        _tell(error, code, faults, as_json=_wants_json(arguments))
    except OSError:  # standard output is full or gone; the code says what the document could not
        _tell(error, code, faults, as_json=False)
    if code is ExitCode.INTERNAL or ({"-v", "--verbose"} & set(arguments)):
        traceback.print_exception(error, file=sys.stderr)
    return int(code)


def _tell(error: BaseException, code: ExitCode, faults: Sequence[Fault], *, as_json: bool) -> None:
    if as_json:
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


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether the command was asked for JSON, by its option or its variable (``XCFG_RUN_JSON``).

    Read from the arguments themselves: the command may have failed before click understood them.
    """
    words = [item.upper().replace("-", "_") for item in arguments if not item.startswith("-")]
    commands = [*words, *("_".join(pair) for pair in pairwise(words))]
    return "--json" in arguments or any(os.environ.get(f"XCFG_{name}_JSON", "0") not in _OFF for name in commands)


def classify(error: BaseException) -> tuple[ExitCode, tuple[Fault, ...]]:
    """The exit code of an exception and what to say about it."""
    if isinstance(error, XcfgError):
        return error.exit_code, error.faults
    if isinstance(error, click.exceptions.Exit):
        return ExitCode(error.exit_code), ()
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return ExitCode.INTERRUPTED, (
            Fault(message="interrupted", hint="run it again; it goes on from the side runs that were finished"),
        )
    if isinstance(error, click.ClickException):
        return ExitCode.USAGE, (Fault(message=error.format_message(), where="command line"),)
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        fault = Fault(
            message="no space left on device", where=str(error.filename or ""), hint="free space and run again"
        )
        return EnvironmentFault.exit_code, (fault,)
    if isinstance(error, OSError) and error.errno in _NO_ACCESS and error.filename:
        return ExitCode.USAGE, (Fault(message=str(error.strerror), where=str(error.filename)),)
    # also SystemExit, whatever its number: nothing of ours raises it, and 0 or 1 of others would read as a verdict
    return ExitCode.INTERNAL, (Fault(message=f"internal error: {type(error).__name__}: {error}"),)

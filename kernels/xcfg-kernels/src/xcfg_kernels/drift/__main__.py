"""``python -m xcfg_kernels.drift``: the command ``xcfg kernels drift`` by itself, with the same exit codes."""

from __future__ import annotations

import json
import sys
import traceback

import click

from xcfg.errors import Fault, XcfgError
from xcfg.exitcodes import ExitCode
from xcfg_kernels.drift.command import drift


def main(arguments: list[str]) -> int:
    """Run the command and say what went wrong, as JSON where ``--json`` was given."""
    try:
        return int(drift.main(args=arguments, prog_name="xcfg kernels drift", standalone_mode=False))
    except XcfgError as error:
        code, faults = error.exit_code, error.faults
    except click.ClickException as error:
        code, faults = ExitCode.USAGE, (Fault(message=error.format_message(), where="command line"),)
    except click.Abort:
        code, faults = ExitCode.INTERRUPTED, (Fault(message="interrupted"),)
    except Exception as error:  # Python's own exit code for it is 1, which reads as drift
        traceback.print_exception(error)
        code, faults = ExitCode.INTERNAL, (Fault(message=f"internal error: {type(error).__name__}: {error}"),)
    if "--json" in arguments:
        errors = [{"where": item.where, "message": item.message, "hint": item.hint} for item in faults]
        click.echo(json.dumps({"schema": "xcfg.error/1", "status": "error", "code": int(code), "errors": errors}))
    else:
        for fault in faults:
            click.echo(f"xcfg: {fault}", err=True)
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

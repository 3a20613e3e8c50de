"""Errors a user can act on: what, where, what to do.

Every error carries the exit code of the group it belongs to, so that the command line needs no table of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from xcfg.exitcodes import ExitCode


@frozen(kw_only=True)
class Fault:
    """One thing that is wrong, at one place.

    ``where`` is a file with line and column, a path inside a document, a command-line option or an identifier.
    """

    message: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        """One line: place, message, hint."""
        place = f"{self.where}: " if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.message}{hint}"


class XcfgError(Exception):
    """Base of every error raised on purpose; holds one or more faults."""

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str = "", *, where: str = "", hint: str = "", faults: Iterable[Fault] = ()) -> None:
        """Give either one ``message`` with its place and hint, or ready ``faults``."""
        self.faults = tuple(faults) or (Fault(message=message, where=where, hint=hint),)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class InvalidInput(XcfgError):
    """A wrong option, experiment file or output folder: the user's to mend (exit 2)."""

    exit_code = ExitCode.USAGE


class PluginError(XcfgError):
    """A plugin is broken, missing, clashes with another or has the wrong version (exit 4)."""

    exit_code = ExitCode.PLUGIN


class NothingSelected(XcfgError):
    """A filter or slice left no case to run (exit 5)."""

    exit_code = ExitCode.NOTHING


class ArtifactError(XcfgError):
    """A stored artifact is unreadable, truncated, of another schema or its seal is broken (exit 6)."""

    exit_code = ExitCode.INVALID


class EnvironmentFault(XcfgError):
    """The machine lacks something: memory, disk, a port, a device, a library (exit 7)."""

    exit_code = ExitCode.EXECUTION


class UnsupportedError(XcfgError):
    """A capability that is not there, with the reason (exit 8 under ``--strict``)."""

    exit_code = ExitCode.UNSUPPORTED

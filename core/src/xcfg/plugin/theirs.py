"""Calls into another distribution's code, whose failures are that distribution's and not ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xcfg.errors import PluginError, XcfgError
from xcfg.plugin.inventory import CORE
from xcfg.plugin.raised import said


@contextmanager
def theirs(what: str, owner: str) -> Iterator[None]:
    """Where code of the distribution ``owner`` runs: what it raises becomes a PluginError that names both.

    Errors of ours, with which plugins speak to the user, pass; so do those of the operating system, which are the
    machine's; and whatever core's own code raises, which no plugin is to blame for.
    """
    try:
        yield
    except (XcfgError, OSError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if owner == CORE:
            raise
        hint = "-v shows where; tell those who made it"
        raise PluginError(f"{what} failed: {said(error)}", where=owner, hint=hint) from error

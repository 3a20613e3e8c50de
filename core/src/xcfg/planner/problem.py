"""A fault of an experiment before it has a line and a column."""

from __future__ import annotations

from attrs import frozen

from xcfg.errors import InvalidInput, XcfgError
from xcfg.model.codec import Path, PathFault

Mark = tuple[int, int]
"""Line and column, both from 1."""


@frozen(kw_only=True)
class Problem:
    """What is wrong at a path of keys and indices.

    ``at_key`` points at the key instead of the value; ``mark`` is a position that the path cannot give (the second of
    two equal keys). ``kind`` is the error class the problem belongs to by itself.
    """

    path: Path = ()
    message: str
    hint: str = ""
    at_key: bool = False
    mark: Mark | None = None
    kind: type[XcfgError] = InvalidInput


def from_shape(fault: PathFault) -> Problem:
    """The problem of a fault that the codec found."""
    return Problem(path=fault.path, message=fault.message, at_key=fault.at_key)


def from_error(error: XcfgError, path: Path, *, at_key: bool = False) -> list[Problem]:
    """The faults of an error as problems at ``path``."""
    return [
        Problem(path=path, message=fault.message, hint=fault.hint, at_key=at_key, kind=type(error))
        for fault in error.faults
    ]

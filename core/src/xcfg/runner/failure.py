"""Why a rank failed, sorted into the statuses of a side run."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from attrs import frozen

from xcfg.errors import EnvironmentFault, UnsupportedError
from xcfg.model.attempt import SideFailure
from xcfg.model.status import Status

_LACKING = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.ENOMEM,
        errno.EMFILE,
        errno.ENFILE,
        errno.EADDRINUSE,
        errno.EADDRNOTAVAIL,
        errno.ENODEV,
        errno.ENXIO,
    }
)
_OUT_OF_MEMORY = "OutOfMemoryError"
"""Name of the device memory error of torch, which core does not import."""


@frozen(kw_only=True)
class RankFailure:
    """``phase`` is what the rank was doing; ``at`` seconds since the epoch, to find which rank failed first."""

    status: str
    phase: str
    reason: str
    at: float

    def side_failure(self) -> SideFailure:
        """The failure of the side run that this rank belongs to."""
        return SideFailure(status=self.status, reason=f"{self.phase}: {self.reason}")


def classify(error: BaseException, phase: str) -> Status:
    """The status of an error raised in ``phase`` (``import``, ``open``, ``sample``, ``score``, ``close``)."""
    if isinstance(error, UnsupportedError):
        return Status.UNSUPPORTED
    if any(_lacking(item) for item in _causes(error)):
        return Status.ENVIRONMENT_ERROR
    return Status.LAUNCH_ERROR if phase in ("import", "open") else Status.SCORER_ERROR


def _lacking(error: BaseException) -> bool:
    if isinstance(error, EnvironmentFault | ImportError | MemoryError):
        return True
    if isinstance(error, OSError) and error.errno in _LACKING:
        return True
    return type(error).__name__ == _OUT_OF_MEMORY


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was explicitly raised from; what happened to be handled meanwhile explains nothing."""
    seen: set[int] = set()
    left: BaseException | None = error
    while left is not None and id(left) not in seen:
        seen.add(id(left))
        yield left
        left = left.__cause__

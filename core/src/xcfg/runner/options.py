"""How a plan is executed; nothing here changes what is compared."""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import ge, gt, optional

from xcfg.model.scorer import Role
from xcfg.plugin.executor import Limits


@frozen(kw_only=True)
class RunOptions:
    """Options of one execution.

    ``start_timeout``: seconds until an engine is open. ``timeout``: seconds that scoring one side run, or sampling the
    token batch, may take. ``stop_timeout``: seconds an engine may take to close. ``jobs``: engines at
    once, None for what memory and cores allow. ``repeat``: how often each side is scored. ``retry``: further tries of
    a side that failed to launch, to score or in time. ``resume`` False executes sealed side runs again. ``only``: the
    one role whose side runs are executed. ``share`` False gives each side of each case an engine of its own.
    """

    start_timeout: float = field(default=1800.0, validator=gt(0))
    timeout: float = field(default=900.0, validator=gt(0))
    stop_timeout: float = field(default=120.0, validator=gt(0))
    resume: bool = True
    jobs: int | None = field(default=None, validator=optional(ge(1)))
    repeat: int = field(default=1, validator=ge(1))
    retry: int = field(default=0, validator=ge(0))
    fail_fast: bool = False
    only: Role | None = None
    share: bool = True

    @property
    def limits(self) -> Limits:
        """The seconds of each part of a launch."""
        return Limits(start=self.start_timeout, score=self.timeout, stop=self.stop_timeout)

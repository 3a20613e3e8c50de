"""How a plan is executed; nothing here changes what is compared."""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import ge, gt, optional


@frozen(kw_only=True)
class RunOptions:
    """Options of one execution.

    ``timeout``: seconds one side run may take; the first of an engine includes its construction. ``jobs``: engines at
    once, None for what memory and cores allow. ``repeat``: how often each side is scored. ``retry``: further tries of
    a side that failed to launch, to score or in time. ``resume`` False executes sealed side runs again.
    """

    timeout: float = field(default=900.0, validator=gt(0))
    resume: bool = True
    jobs: int | None = field(default=None, validator=optional(ge(1)))
    repeat: int = field(default=1, validator=ge(1))
    retry: int = field(default=0, validator=ge(0))
    fail_fast: bool = False

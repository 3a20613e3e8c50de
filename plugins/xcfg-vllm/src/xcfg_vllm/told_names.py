"""Names that a served engine's client, scheduler and workers share; imports no engine."""

from __future__ import annotations

TOGETHER = "xcfg_together"
"""In a request's ``extra_args``: name of a batch, how many requests it has, and this one's place in it."""
TOLD = "xcfg_told"
"""Attribute of every step's ``SchedulerOutput``: the scheduler's process and what its cache holds."""

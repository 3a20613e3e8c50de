"""What can go wrong between the scorer and a live vLLM engine."""

from __future__ import annotations


class EngineFault(RuntimeError):
    """The engine did something that makes its numbers unusable; the message says what and what to do."""


class WorkerDied(EngineFault):
    """A vLLM worker process ended before the engine was closed."""

"""What can go wrong between the scorer and a live vLLM engine."""

from __future__ import annotations

from typing import Any

from xcfg.errors import UnsupportedError


class EngineFault(RuntimeError):
    """The engine did something that makes its numbers unusable; the message says what and what to do."""


class WorkerDied(EngineFault):
    """A vLLM worker process ended before the engine was closed."""


def refusal_of(error: BaseException) -> UnsupportedError | None:
    """What vLLM says where it finds its own configuration invalid, before it starts anything; None for other errors."""
    listed: Any = getattr(error, "errors", None)
    if type(error).__name__ != "ValidationError" or not callable(listed):
        return None
    sentences = [str(item["msg"]).removeprefix("Value error, ").splitlines()[0] for item in listed()]
    return UnsupportedError("vLLM refuses: " + "; ".join(sentences), where="vllm")

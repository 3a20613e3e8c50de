"""A bound kernel operator that knows whether it was called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Counted:
    """Passes calls and attributes through to ``operator``; ``calls`` counts the calls.

    A backend that was bound and never called computed nothing, whatever its binding says.
    """

    def __init__(self, operator: Callable[..., Any]) -> None:
        """Start counting at 0."""
        self.operator = operator
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator."""
        self.calls += 1
        return self.operator(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """What the operator itself says of itself."""
        return getattr(self.operator, name)

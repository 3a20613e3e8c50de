"""What a plugin can do for one value, and what could not be observed."""

from __future__ import annotations

from attrs import frozen


@frozen
class Supported:
    """The value can be applied."""


@frozen
class Unsupported:
    """The value cannot be applied here; ``reason`` is a sentence."""

    reason: str


Capability = Supported | Unsupported


@frozen
class Unobservable:
    """The live object does not show the value; never counts as applied."""

    reason: str = "the engine does not expose it"

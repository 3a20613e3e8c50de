"""Sequence ids as bytes: the order of a comparison, and the form in which ids are stored and exchanged."""

from __future__ import annotations

_FORM = ("utf-8", "surrogatepass")
"""UTF-8, where a half character, which JSON can carry, is kept as it is."""


def encoded(text: str) -> bytes:
    """UTF-8, in which ids are ordered."""
    return text.encode(*_FORM)


def decoded(data: bytes) -> str:
    """The text that :func:`encoded` was given."""
    return data.decode(*_FORM)

"""Sequence ids as bytes: the order of a comparison, and the form in which ids are stored and exchanged."""

from __future__ import annotations

_HALVES = "surrogatepass"
"""A half character, which JSON can carry, is kept as it is."""


def encoded(text: str) -> bytes:
    """UTF-8, in which ids are ordered."""
    return text.encode("utf-8", _HALVES)


def decoded(data: bytes) -> str:
    """The text that :func:`encoded` was given."""
    return data.decode("utf-8", _HALVES)

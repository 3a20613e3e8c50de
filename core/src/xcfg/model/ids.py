"""Content-derived identifiers: RFC 8785 canonical JSON under SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import rfc8785

from xcfg.model.json import Json

_SAFE_INTEGER = 2**53


def _portable(value: Json) -> Json:
    """Plain dicts and lists, in which integers beyond 2**53, which JSON readers round, are text."""
    kind = type(value)
    if value is None or kind is str or kind is float or kind is bool:  # most values are, and asking for Mapping is slow
        return value
    if kind is dict or isinstance(value, Mapping):
        return {key: _portable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_portable(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _SAFE_INTEGER:
        return str(value)
    return value


def canonical(value: Json) -> bytes:
    """Canonical UTF-8 JSON of a value; 1.0 and 1 are one value.

    Raises ``rfc8785.CanonicalizationError`` on NaN and infinity.
    """
    return rfc8785.dumps(_portable(value))


def digest(value: Json) -> str:
    """SHA-256 of the canonical form, 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def short_id(value: Json) -> str:
    """The first 16 hex digits of :func:`digest`: enough for 10**8 ids at a collision chance below 1e-3."""
    return digest(value)[:16]

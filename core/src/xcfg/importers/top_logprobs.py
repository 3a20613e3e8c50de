"""The most likely tokens beside each response token, as a file lists them."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.errors import ArtifactError
from xcfg.importers.values import number
from xcfg.model.recorded import Row


def top_logprobs(value: object, row: Row, name: str) -> tuple[Mapping[int, float], ...]:
    """One mapping of token id to logprob (nats) a response token, empty where the file has null.

    A key is the token id as an integer or its text. A token whose logprob is null is not listed: a column of structs
    has every token of the file in every row. Raises ArtifactError.
    """
    if not isinstance(value, list | tuple):
        raise ArtifactError(f"{name} is not a list with one object a response token", where=row.place)
    return tuple(_listed(item, row, f"{name}[{at}]") for at, item in enumerate(value))


def _listed(item: object, row: Row, name: str) -> dict[int, float]:
    if item is None:
        return {}
    if not isinstance(item, Mapping):
        raise ArtifactError(f"{name} is not an object of token id and logprob", where=row.place)
    found: dict[int, float] = {}
    for key, value in item.items():
        token = _token(key, row, name)
        if token in found:
            raise ArtifactError(f"{name} lists token {token} twice", where=row.place)
        if value is not None:
            found[token] = number(value, row, f"{name}[{key}]")
    return found


def _token(key: object, row: Row, name: str) -> int:
    digits = str(key)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise ArtifactError(f"{name} has the key {key!r:.60}, not a token id", where=row.place)
    return int(digits)

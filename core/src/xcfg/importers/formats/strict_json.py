"""JSON of untrusted files: a key may not appear twice, and every refusal has its line.

NaN, Infinity and numbers beyond the float range are values here: what a logprob of that kind means is for the
comparison to say.
"""

from __future__ import annotations

import json

from xcfg.errors import ArtifactError


def parse(data: bytes | str, name: str, *, line: int | None = None, hint: str = "") -> object:
    """The value of JSON text. ``line`` is the number of its first line in the file ``name``, where that is known.

    Raises ArtifactError; ``hint`` is what to look at where the syntax is broken.
    """
    place = name if line is None else f"{name} line {line}"
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        return json.loads(text, object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise ArtifactError(f"not UTF-8 text: {error.reason} at byte {error.start}", where=place) from error
    except json.JSONDecodeError as error:
        where = f"{name} line {(line or 1) + error.lineno - 1}"
        raise ArtifactError(f"not JSON: {error.msg} at column {error.colno}", where=where, hint=hint) from error
    except (ValueError, RecursionError) as error:  # a key twice, an integer of too many digits; nesting
        raise ArtifactError(f"not a JSON record: {error}", where=place) from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"key {twice!r} appears twice")
    return found

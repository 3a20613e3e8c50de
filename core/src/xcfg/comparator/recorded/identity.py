"""Whether two records are of the same tokens: the first difference, named with its place and both values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle

import numpy as np
from attrs import frozen

from xcfg.comparator.recorded.store import Arrays, Stored


@frozen(eq=False)
class Held:
    """A record with what it holds; ``said`` names it in messages: ``training rank 1 (train.jsonl line 3)``."""

    entry: Stored
    arrays: Arrays
    said: str

    @property
    def versions(self) -> list[str]:
        """Its weight versions: none, one, or one a response token."""
        found: list[str] = [] if self.entry.versions == "[]" else json.loads(self.entry.versions)
        return found


def differences(reference: Held, other: Held) -> Iterator[tuple[str, str]]:
    """Field and sentence of each difference between two records of one sequence id."""
    name = reference.entry.name
    left, right = reference.arrays, other.arrays
    yield from _array(name, "response_ids", reference, other, left.response_ids, right.response_ids)
    if left.prompt_ids is not None and right.prompt_ids is not None:
        yield from _array(name, "prompt_ids", reference, other, left.prompt_ids, right.prompt_ids)
    if len(left.response_ids) != len(right.response_ids):
        return
    if left.mask is not None or right.mask is not None:
        masks = [np.ones(len(side.response_ids), bool) if side.mask is None else side.mask for side in (left, right)]
        yield from _array(name, "mask", reference, other, *masks)
    if left.position_ids is not None or right.position_ids is not None:
        yield from _positions(name, reference, other)
    yield from _versions(name, reference, other)


def changing_version(held: Held) -> str:
    """A sentence where the weight version changes inside one record; no single forward pass has both."""
    versions = held.versions
    changed = next((at for at, version in enumerate(versions) if version != versions[0]), None)
    if changed is None:
        return ""
    return (
        f"weight_version changes inside sequence {held.entry.name!r} of {held.said} at position {changed}: "
        f"{versions[0]!r} before, {versions[changed]!r} from there"
    )


def _array(
    name: str, field: str, reference: Held, other: Held, left: np.ndarray, right: np.ndarray
) -> Iterator[tuple[str, str]]:
    if len(left) != len(right):
        sentence = (
            f"{field} of sequence {name!r} has {len(left)} values in {reference.said}, {len(right)} in {other.said}"
        )
        yield field, sentence
        return
    different = left != right
    if different.any():
        at = int(np.argmax(different))
        yield (
            field,
            f"{field} differs in sequence {name!r} at index {at}: {reference.said} {left[at].item()}, "
            f"{other.said} {right[at].item()}",
        )


def _positions(name: str, reference: Held, other: Held) -> Iterator[tuple[str, str]]:
    """Positions, the prompt's too where both state them; a side without counts as having consecutive ones."""
    left, right = reference.arrays.position_ids, other.arrays.position_ids
    if left is not None and right is not None:
        both = min(len(left), len(right))
        yield from _array(name, "position_ids", reference, other, left[len(left) - both :], right[len(right) - both :])
        return
    stated, held = (left, reference) if left is not None else (right, other)
    assert stated is not None
    jumps = np.flatnonzero(np.diff(stated) != 1)
    if len(jumps):
        at = int(jumps[0]) + 1
        yield (
            "position_ids",
            f"position_ids of sequence {name!r} in {held.said} go from {stated[at - 1]} to {stated[at]} at index {at}; "
            "the other side states none, which counts as consecutive",
        )
    prompt = reference.arrays.prompt_ids if other.arrays.prompt_ids is None else other.arrays.prompt_ids
    response = stated[len(stated) - len(held.arrays.response_ids) :]
    if prompt is not None and len(response) and int(response[0]) != len(prompt):
        yield (
            "position_ids",
            f"position_ids of sequence {name!r} in {held.said} start the response at {int(response[0])}, its prompt "
            f"has {len(prompt)} tokens",
        )


def _versions(name: str, reference: Held, other: Held) -> Iterator[tuple[str, str]]:
    """The first token with other weights. One version is that of every token; a side without any differs in none."""
    left, right = reference.versions, other.versions
    field = "weight_version"
    for place, ours, theirs in zip(range(max(len(left), len(right))), cycle(left), cycle(right)):
        if ours != theirs:
            sentence = f"{field} differs in sequence {name!r} from position {place}: {reference.said} {ours!r}, "
            yield field, sentence + f"{other.said} {theirs!r}"
            return

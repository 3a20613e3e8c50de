"""What the processes of one comparison tell each other beside numbers: what is wrong, their terms, what they found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from attrs import evolve

from xcfg.comparator.exchange import Exchange, gather_texts
from xcfg.errors import InvalidInput
from xcfg.model.codec import structure, unstructure
from xcfg.model.json import Json
from xcfg.model.result import Finding


@contextmanager
def announcing(exchange: Exchange) -> Iterator[None]:
    """Raise an error of the block only after telling the others of it: they wait in :func:`agreed`, and raise too."""
    try:
        yield
    except Exception as error:
        _gather({"fault": str(error) or type(error).__name__}, exchange)
        raise


def agreed(terms: Mapping[str, Json], part: Mapping[str, Json], exchange: Exchange) -> list[Mapping[str, Json]]:
    """The ``part`` of every participant, in rank order, where all have the same ``terms``.

    Raises InvalidInput, on every participant, where one announced an error or has other terms.
    """
    said = _gather({"terms": dict(terms), "part": dict(part)}, exchange)
    faults = [f"rank {rank}: {item['fault']}" for rank, item in enumerate(said) if "fault" in item]
    if faults:
        raise InvalidInput("; ".join(faults), where="group")
    for name in terms:
        values = [item["terms"][name] for item in said]
        if any(value != values[0] for value in values):
            each = ", ".join(f"{value!r} on rank {rank}" for rank, value in enumerate(values))
            raise InvalidInput(f"every rank must give the same {name}, got {each}", where=name)
    return [item["part"] for item in said]


def everyones(findings: Sequence[Finding], exchange: Exchange) -> tuple[Finding, ...]:
    """The findings of every participant, in rank order, with its rank in the evidence; once where all have the same."""
    said = [item["findings"] for item in _gather({"findings": [unstructure(item) for item in findings]}, exchange)]
    if len(said) == 1:
        return tuple(findings)
    found = []
    for rank, items in enumerate(said):
        for item in items:
            finding = structure(item, Finding)
            if not all(item in others for others in said):
                found.append(evolve(finding, evidence={"rank": rank, **finding.evidence}))
            elif rank == 0:
                found.append(finding)
    return tuple(found)


def _gather(value: Mapping[str, Json], exchange: Exchange) -> list[dict[str, Json]]:
    return [json.loads(text) for text in gather_texts(json.dumps(value), exchange)]

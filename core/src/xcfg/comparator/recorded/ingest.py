"""Taking records in: what a record may not be, whatever the other side says."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from xcfg.comparator.recorded.faults import Faults, Kind
from xcfg.comparator.recorded.store import UNRANKED, Store
from xcfg.comparator.utf8 import encoded
from xcfg.comparator.values import POSITIVE_ROUNDING, not_finite, positive, sound
from xcfg.model.recorded import Record

SIDES = ("rollout", "training")
RANKS = 1 << 31
"""More ranks than there are: a larger number is something else."""


def ingest(side: int, records: Iterable[Record], store: Store, faults: Faults) -> None:
    """Store every sound record of a side and note what is wrong with the others."""
    empty = True
    for record in records:
        empty = False
        key = (encoded(record.id), UNRANKED if record.rank is None else record.rank)
        if wrong := _lengths(record):
            faults.add(Kind.LENGTH, f"{_at(side, record)}: {wrong}", key)
            continue
        _values(side, record, key, faults)
        store.append(side, record)
    if empty:
        faults.add(Kind.EMPTY, f"{SIDES[side]} holds no record", of=SIDES[side])


def _at(side: int, record: Record) -> str:
    return f"{SIDES[side]} sequence {record.id!r} ({record.place})"


def _lengths(record: Record) -> str:
    """The first array whose length does not fit ``response_ids``."""
    n = len(record.response_ids)
    m = None if record.prompt_ids is None else len(record.prompt_ids)
    held = {"logprobs": record.logprobs, "mask": record.mask, "top_logprobs": record.top_logprobs}
    for name, values in held.items():
        if values is not None and len(values) != n:
            return f"{name} has {len(values)} values, response_ids {n}"
    if record.position_ids is not None and len(record.position_ids) not in (n, n + (m or 0)):
        expected = f"{n} for the response" + (f" or {n + m} with the prompt" if m is not None else "")
        return f"position_ids has {len(record.position_ids)} values, expected {expected}"
    if len(record.weight_versions) not in (0, 1, n):
        return f"weight_version has {len(record.weight_versions)} values, expected one or {n}"
    if record.rank is not None and not 0 <= record.rank < RANKS:
        return f"rank is {record.rank}, ranks count from 0"
    return ""


def _values(side: int, record: Record, key: tuple[bytes, int], faults: Faults) -> None:
    """Active values that are no logprob; what stands in an inactive place is never looked at."""
    logprobs = record.logprobs
    if sound(logprobs):
        return
    active = True if record.mask is None else record.mask
    wrong = not_finite(logprobs) & active
    if wrong.any():
        _first(side, record, key, faults, wrong, Kind.NOT_FINITE, "not finite")
    above = positive(logprobs) & active
    if above.any():
        said = f"above {POSITIVE_ROUNDING:g}, a probability above one"
        _first(side, record, key, faults, above, Kind.POSITIVE, said)


def _first(
    side: int, record: Record, key: tuple[bytes, int], faults: Faults, bad: np.ndarray, kind: Kind, said: str
) -> None:
    at = int(np.argmax(bad))
    active = len(bad) if record.mask is None else int(record.mask.sum())
    faults.add(
        kind,
        f"{_at(side, record)}: {int(bad.sum())} of {active} active logprobs are {said}, first "
        f"{float(record.logprobs[at])} at position {at}",
        key,
    )

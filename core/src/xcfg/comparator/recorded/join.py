"""Pairing by sequence id: every record of an id on both sides, checked, then written as rows of active tokens."""

from __future__ import annotations

from itertools import groupby, pairwise, product

import numpy as np
from attrs import define, field

from xcfg.comparator.recorded.faults import Faults, Kind
from xcfg.comparator.recorded.identity import Held, changing_version, differences
from xcfg.comparator.recorded.ingest import SIDES
from xcfg.comparator.recorded.pairs import PairsWriter
from xcfg.comparator.recorded.replicas import Replicas
from xcfg.comparator.recorded.statements import WEIGHTS, Agreement, agree
from xcfg.comparator.recorded.store import Store, Stored


@define(kw_only=True)
class Join:
    """The state of one pass over both sides in order of sequence id: sequences ``found``, and ``paired`` as sound."""

    store: Store
    faults: Faults
    writer: PairsWriter
    unknown: set[str] = field(factory=set)
    unknown_place: str = ""
    response_tokens: int = 0
    found: int = 0
    paired: int = 0
    replicas: tuple[Replicas, Replicas] = field(factory=lambda: (Replicas(SIDES[0]), Replicas(SIDES[1])))
    _agreed: dict[tuple[int, int], Agreement] = field(factory=dict)

    def run(self) -> None:
        """Check and pair every sequence."""
        for id, entries in groupby(self.store.entries(), key=lambda entry: entry.id):
            self._sequence(id, list(entries))

    def _sequence(self, id: bytes, entries: list[Stored]) -> None:
        self.found += 1
        sides = [[entry for entry in entries if entry.side == side] for side in (0, 1)]
        for side, mine in enumerate(sides):
            for first, second in pairwise(mine):
                if first.rank == second.rank:
                    rank = "" if first.rank < 0 else f" on rank {first.rank}"
                    sentence = (
                        f"{SIDES[side]} has sequence {first.name!r}{rank} twice: {first.place} and {second.place}"
                    )
                    self.faults.add(Kind.DUPLICATE, sentence, (id, first.rank))
            if not mine:
                only = sides[1 - side][0]
                sentence = f"sequence_ids: {only.name!r} ({only.place}) is only on the {SIDES[1 - side]} side"
                self.faults.add(Kind.ONE_SIDED, sentence, (id, only.rank), of=SIDES[side])
        if not all(sides):
            return
        held = [[Held(entry, self.store.read(entry), _said(side, entry)) for entry in sides[side]] for side in (0, 1)]
        if self._identical(id, held):
            self._pair(held)

    def _identical(self, id: bytes, held: list[list[Held]]) -> bool:
        reference, sound = held[0][0], True
        for other in (*held[0][1:], *held[1]):
            for name, sentence in differences(reference, other):
                self.faults.add(Kind.DIFFERENT, sentence, (id, other.entry.rank), of=name)
                sound = False
        for item in (*held[0], *held[1]):
            if sentence := changing_version(item):
                self.faults.add(Kind.CHANGING, sentence, (id, item.entry.rank))
                sound = False
        for left, right in product(*held):
            sound &= self._stated(id, left, right)
        return sound

    def _stated(self, id: bytes, left: Held, right: Held) -> bool:
        key = (left.entry.stated, right.entry.stated)
        if key not in self._agreed:
            rollout, training = (self.store.statements[number]["semantics"] for number in key)
            self._agreed[key] = agree(rollout, training)
        agreed = self._agreed[key]
        unknown = set(agreed.unknown)
        for side in (left, right):
            unknown |= set(self.store.statements[side.entry.stated]["assumed"])
            unknown |= {name for name in ("prompt_ids", "mask", "position_ids") if getattr(side.arrays, name) is None}
            unknown |= set() if side.entry.versions != "[]" else set(WEIGHTS)
        if unknown - self.unknown:
            self.unknown_place = self.unknown_place or f"sequence {left.entry.name!r} ({left.entry.place})"
            self.unknown |= unknown
        if agreed.difference:
            sentence = f"{agreed.difference}; sequence {left.entry.name!r} ({left.entry.place}, {right.entry.place})"
            self.faults.add(Kind.SEMANTICS, sentence, (id, left.entry.rank))
        return not agreed.difference

    def _pair(self, held: list[list[Held]]) -> None:
        self.paired += 1
        for side in (0, 1):
            self.replicas[side].add(held[side])
        reference = held[0][0]
        response_ids, mask = reference.arrays.response_ids, reference.arrays.mask
        self.response_tokens += len(response_ids)
        position = np.arange(len(response_ids)) if mask is None else np.flatnonzero(mask)
        if not len(position):
            return
        self.writer.sequence(reference.entry.id)
        common = {"position": position, "token": response_ids[position]}
        rollout, train = ([item.arrays.logprobs[position] for item in side] for side in held)
        rows = list(product(range(len(rollout)), range(len(train))))
        worst = rows[0] if len(rows) == 1 else max(rows, key=lambda row: _drift(rollout[row[0]], train[row[1]]))
        for left, right in rows:
            ranks = (max(held[0][left].entry.rank, 0), max(held[1][right].entry.rank, 0))
            columns = {"rollout": rollout[left], "train": train[right], **common}
            self.writer.row(ranks, columns, judged=(left, right) == worst)


def _said(side: int, entry: Stored) -> str:
    return SIDES[side] + ("" if entry.rank < 0 else f" rank {entry.rank}") + f" ({entry.place})"


def _drift(rollout: np.ndarray, train: np.ndarray) -> float:
    """Largest abs(d) of a row, a NaN above all."""
    with np.errstate(invalid="ignore"):
        largest = float(np.max(np.abs(train.astype(np.float64) - rollout)))
    return largest if largest == largest else np.inf

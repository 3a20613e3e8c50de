"""What each rank of a recorded side declares: its compute dtype, and whether every rank is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, islice

from attrs import field, frozen

from xcfg.comparator.recorded.faults import Faults, Kind
from xcfg.comparator.recorded.ingest import SIDES
from xcfg.comparator.recorded.store import Store
from xcfg.comparator.tolerance import lowest
from xcfg.errors import InvalidInput
from xcfg.model.json import tupled
from xcfg.model.sample import RankInfo
from xcfg.model.status import Status

_SHOWN = 5


@frozen(kw_only=True)
class Declared:
    """The ranks of one side, by rank; ``unknown`` names fields it leaves out, the first time at ``unknown_place``."""

    ranks: tuple[RankInfo, ...] = field(converter=tupled)
    unknown: frozenset[str] = frozenset()
    unknown_place: str = ""


def declared(store: Store, dtype: str, faults: Faults) -> tuple[Declared, Declared]:
    """Both sides. ``dtype`` fills in for records that state none.

    Without it they count as the lowest dtype that any record of either side states, which is then assumed.
    Raises InvalidInput where ``dtype`` contradicts a record and fills in for none.
    """
    stated = [_stated(store, side) for side in (0, 1)]
    if dtype:
        stated = _filled(stated, dtype)
    if not faults.has(Status.INVALID_ARTIFACT):  # the records of a refused rank are not among those stored
        for side, by_rank in enumerate(stated):
            _complete(side, sorted(by_rank), store, faults)
    known = lowest([name for by_rank in stated for dtypes in by_rank.values() for name in dtypes if name])
    rollout, training = (_side(by_rank, known) for by_rank in stated)
    return rollout, training


def _stated(store: Store, side: int) -> dict[int, dict[str, str]]:
    """Rank to each dtype that its records state, empty for none, with the place of one of them."""
    by_rank: dict[int, dict[str, str]] = {}
    for rank, number, place in store.declarations(side):
        by_rank.setdefault(rank, {}).setdefault(str(store.statements[number]["dtype"]), place)
    return by_rank


def _filled(stated: list[dict[int, dict[str, str]]], dtype: str) -> list[dict[int, dict[str, str]]]:
    """The same with ``dtype`` in place of none. Raises InvalidInput where it would only contradict."""
    every = [(side, dtypes) for side, by_rank in enumerate(stated) for dtypes in by_rank.values()]
    if not any("" in dtypes for _, dtypes in every):
        for side, dtypes in every:
            for said, place in dtypes.items():
                if said != dtype:
                    raise InvalidInput(
                        f"{SIDES[side]} records state dtype {said}, --dtype says {dtype}",
                        where=place,
                        hint="leave --dtype out, or correct the records",
                    )
    return [
        {rank: {said or dtype: place for said, place in dtypes.items()} for rank, dtypes in by_rank.items()}
        for by_rank in stated
    ]


def _side(by_rank: Mapping[int, Mapping[str, str]], known: str) -> Declared:
    ranks = [
        RankInfo(
            rank=max(rank, 0), world_size=len(by_rank), compute_dtype=lowest(sorted(name or known for name in dtypes))
        )
        for rank, dtypes in sorted(by_rank.items())
    ]
    silent = [dtypes[""] for _, dtypes in sorted(by_rank.items()) if "" in dtypes]
    if not (known and silent):
        return Declared(ranks=ranks)
    return Declared(ranks=ranks, unknown=frozenset({"dtype"}), unknown_place=silent[0])


def _complete(side: int, ranks: Sequence[int], store: Store, faults: Faults) -> None:
    """Ranks count from 0 without a gap, and either every record has one or none has."""
    stated = {rank for rank in ranks if rank >= 0}
    if stated and ranks[0] < 0:
        sentence = f"some {SIDES[side]} records state a rank and some do not, as {store.place_without_rank(side)}"
        faults.add(Kind.RANKS, sentence, of=SIDES[side])
    if missing := max(stated, default=-1) + 1 - len(stated):
        first = islice((rank for rank in count() if rank not in stated), min(missing, _SHOWN))
        shown = ", ".join(map(str, first)) + (f" and {missing - _SHOWN} more" if missing > _SHOWN else "")
        sentence = f"{SIDES[side]} has records of rank {max(stated)} and none of rank {shown}"
        faults.add(Kind.RANKS, sentence, of=SIDES[side])

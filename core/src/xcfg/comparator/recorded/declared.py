"""What each rank of a recorded side declares: its compute dtype, and whether every rank is there."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, field, frozen

from xcfg.comparator.recorded.faults import Faults
from xcfg.comparator.recorded.ingest import SIDES
from xcfg.comparator.recorded.store import Store
from xcfg.comparator.tolerance import lowest
from xcfg.errors import InvalidInput
from xcfg.model.json import tupled
from xcfg.model.sample import RankInfo
from xcfg.model.status import Status


@frozen(kw_only=True)
class Declared:
    """The ranks of one side, by rank; ``unknown`` names fields it leaves out."""

    ranks: tuple[RankInfo, ...] = field(converter=tupled)
    unknown: frozenset[str] = frozenset()


def declared(store: Store, dtype: str, faults: Faults) -> tuple[Declared, Declared]:
    """Both sides. ``dtype`` fills in for records that state none; a side without any takes the other's, as assumed.

    Raises InvalidInput where ``dtype`` contradicts a record.
    """
    sides = [_side(store, side, dtype, faults) for side in (0, 1)]
    known = [lowest([info.compute_dtype for info in side.ranks]) for side in sides]
    for mine, other in ((0, 1), (1, 0)):
        if not known[mine] and known[other]:
            ranks = [evolve(info, compute_dtype=known[other]) for info in sides[mine].ranks]
            sides[mine] = Declared(ranks=ranks, unknown=frozenset({"dtype"}))
    return sides[0], sides[1]


def _side(store: Store, side: int, dtype: str, faults: Faults) -> Declared:
    by_rank: dict[int, set[str]] = {}
    for rank, number, place in store.declarations(side):
        said = store.statements[number]["dtype"]
        if dtype and said and said != dtype:
            raise InvalidInput(
                f"{SIDES[side]} records state dtype {said}, --dtype says {dtype}",
                where=place,
                hint="leave --dtype out, or correct the records",
            )
        by_rank.setdefault(rank, set()).add(said or dtype)
    _complete(side, sorted(by_rank), store, faults)
    ranks = [
        RankInfo(rank=max(rank, 0), world_size=len(by_rank), compute_dtype=lowest(sorted(dtypes)))
        for rank, dtypes in sorted(by_rank.items())
    ]
    return Declared(ranks=ranks)


def _complete(side: int, ranks: Sequence[int], store: Store, faults: Faults) -> None:
    """Ranks count from 0 without a gap, and either every record has one or none has."""
    stated = [rank for rank in ranks if rank >= 0]
    if stated and ranks[0] < 0:
        sentence = f"some {SIDES[side]} records state a rank and some do not, as {store.place_without_rank(side)}"
        faults.add(Status.INVALID_ARTIFACT, f"{SIDES[side]} rank", (b"", 0), sentence)
    if missing := sorted(set(range(max(stated, default=-1) + 1)) - set(stated)):
        shown = ", ".join(map(str, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        sentence = f"{SIDES[side]} has records of rank {max(stated)} and none of rank {shown}"
        faults.add(Status.INVALID_ARTIFACT, f"{SIDES[side]} rank", (b"", 0), sentence)

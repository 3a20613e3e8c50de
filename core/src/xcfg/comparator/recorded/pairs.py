"""The active tokens of joined records, in flat files: rows in order of sequence id, read back in blocks."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np
from attrs import evolve, frozen

from xcfg.comparator.blocks import Block, PairedRow, cuts
from xcfg.comparator.utf8 import decoded
from xcfg.model.sample import ragged

_COLUMNS = ("rollout", "train", "position", "token")
_IDS = "ids"
_BUFFER = 1 << 20
_LONG = "q"  # numpy makes int64 of it


class PairsWriter:
    """Appends rows; a context manager. ``wide`` tells of each side whether any of its logprobs is float64."""

    def __init__(self, folder: Path, wide: tuple[bool, bool]) -> None:
        """Open empty files."""
        self._folder = folder
        rollout, train = (np.dtype(np.float64 if side else np.float32) for side in wide)
        self._dtypes = {"rollout": rollout, "train": train, "position": np.dtype("i4"), "token": np.dtype("i8")}
        with ExitStack() as opening:
            self._files = {
                name: opening.enter_context((folder / f"{name}.bin").open("wb", buffering=_BUFFER))
                for name in (*_COLUMNS, _IDS)
            }
            self._open = opening.pop_all()
        self._rows = {name: array(_LONG) for name in ("length", "sequence", "rollout_rank", "train_rank", "judged")}
        self._ends = array(_LONG, [0])

    def __enter__(self) -> PairsWriter:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files."""
        self._open.close()

    def sequence(self, id: bytes) -> None:
        """Begin the rows of a sequence."""
        self._files[_IDS].write(id)
        self._ends.append(self._ends[-1] + len(id))

    def row(self, ranks: tuple[int, int], columns: Mapping[str, np.ndarray], *, judged: bool) -> None:
        """Append a row of at least one active token: logprobs of ``rollout`` and ``train``, ``position``, ``token``."""
        for name, dtype in self._dtypes.items():
            self._files[name].write(np.ascontiguousarray(columns[name], dtype=dtype).data)
        entry = {
            "length": len(columns["token"]),
            "sequence": len(self._ends) - 2,
            "rollout_rank": ranks[0],
            "train_rank": ranks[1],
            "judged": int(judged),
        }
        for name, number in entry.items():
            self._rows[name].append(number)

    def finish(self) -> StoredPairs:
        """Close the files and open them for reading: the judged rows."""
        self._open.close()
        rows = {name: np.array(numbers) for name, numbers in self._rows.items()}
        return StoredPairs(
            folder=self._folder,
            dtypes=self._dtypes,
            ends=np.array(self._ends),
            rows=rows,
            chosen=np.flatnonzero(rows["judged"]),
        )


@frozen(kw_only=True, eq=False)
class StoredPairs:
    """The rows of the files that are numbered ``chosen``, ascending; ``rows`` holds what is known of every row.

    The id of sequence i is the bytes ``ends[i]`` to ``ends[i + 1]`` of their file.
    """

    folder: Path
    dtypes: dict[str, np.dtype[np.generic]]
    ends: np.ndarray
    rows: dict[str, np.ndarray]
    chosen: np.ndarray

    @property
    def active_tokens(self) -> int:
        """Tokens of the chosen rows."""
        return int(self.rows["length"][self.chosen].sum())

    def blocks(self) -> Iterator[Block]:
        """Blocks of whole rows."""
        lengths = self.rows["length"]
        offsets = np.cumsum(lengths) - lengths
        for cut in cuts(lengths[self.chosen]):
            rows = self.chosen[cut]
            chosen = lengths[rows]
            columns = {name: self._read(name, offsets[rows], chosen) for name in ("rollout", "train", "position")}
            yield Block(rows=rows, starts=np.cumsum(chosen) - chosen, lengths=chosen, **columns)

    def row(self, number: int) -> PairedRow:
        """A row by its number in the files."""
        lengths = self.rows["length"]
        span = (np.array([lengths[:number].sum()]), lengths[number : number + 1])
        return PairedRow(
            sequence=self._id(int(self.rows["sequence"][number])),
            rollout_rank=int(self.rows["rollout_rank"][number]),
            train_rank=int(self.rows["train_rank"][number]),
            **{name: self._read(name, *span) for name in _COLUMNS},
        )

    def column(self, name: str, numbers: np.ndarray) -> np.ndarray:
        """``rollout``, ``train``, ``position`` or ``token`` of ascending rows, one row after the other."""
        if not len(numbers):
            return np.zeros(0, dtype=self.dtypes[name])
        lengths = self.rows["length"]
        return self._read(name, (np.cumsum(lengths) - lengths)[numbers], lengths[numbers])

    def by_rank(self) -> Iterator[tuple[tuple[int, int], StoredPairs]]:
        """The rows of each (rollout rank, training rank), replicas included, by rank."""
        ranks = np.stack([self.rows["rollout_rank"], self.rows["train_rank"]])
        found, place = np.unique(ranks, axis=1, return_inverse=True)
        for number, (rollout, train) in enumerate(found.T.tolist()):
            yield (rollout, train), evolve(self, chosen=np.flatnonzero(place.ravel() == number))

    def _id(self, sequence: int) -> str:
        first, end = self.ends[sequence : sequence + 2].tolist()
        with (self.folder / f"{_IDS}.bin").open("rb") as file:
            file.seek(first)
            return decoded(file.read(end - first))

    def _read(self, name: str, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """A column of ascending rows: one read from the first to the last."""
        dtype = self.dtypes[name]
        first, end = int(starts[0]), int(starts[-1] + lengths[-1])
        values = np.fromfile(self.folder / f"{name}.bin", dtype=dtype, count=end - first, offset=first * dtype.itemsize)
        return ragged(values, starts - first, lengths)

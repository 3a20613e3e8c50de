"""The arrays of one file as the fields of one row, each read when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import field, frozen


def _ordered(names: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(names)


@frozen(eq=False)
class Arrays(Mapping[str, object]):
    """``load`` gets one of ``names`` and returns its value; it keeps the file open for as long as it lives."""

    names: Mapping[str, None] = field(converter=_ordered)
    load: Callable[[str], object]

    def __getitem__(self, name: str) -> object:
        """The value, read now."""
        if name not in self.names:
            raise KeyError(name)
        return self.load(name)

    def __iter__(self) -> Iterator[str]:
        """The names in the file's order."""
        return iter(self.names)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.names)

"""Which columns of a row each rank of a context-parallel group has."""

from __future__ import annotations

from collections.abc import Sequence

CONTIGUOUS = "contiguous"
ZIGZAG = "zigzag"


def chunks(layout: str, *, size: int, index: int) -> tuple[int, ...]:
    """The pieces of rank ``index`` of ``size``, ascending, of those into which the ranks cut a row.

    ``contiguous``: the ``index``-th run of columns. ``zigzag``: one piece counted from each end, so that every rank has
    as many query and key pairs to attend to as any other (arXiv:2407.21783, section 3.3.2).
    """
    return (index,) if layout == CONTIGUOUS else (index, 2 * size - 1 - index)


def pieces(layout: str, size: int) -> int:
    """Equal pieces into which ``size`` ranks cut a row; its width must be a multiple of it."""
    return size if layout == CONTIGUOUS else 2 * size


def columns_of(layout: str, width: int, *, size: int, index: int) -> tuple[int, ...]:
    """The columns of a rank, ascending, in rows of ``width``."""
    each = width // pieces(layout, size)
    return tuple(
        column for chunk in chunks(layout, size=size, index=index) for column in range(chunk * each, (chunk + 1) * each)
    )


def layout_of(columns: Sequence[int], width: int, *, size: int, index: int) -> str | None:
    """The layout in which a rank has these columns; None for any others."""
    found = [name for name in (CONTIGUOUS, ZIGZAG) if tuple(columns) == columns_of(name, width, size=size, index=index)]
    return found[0] if len(found) == 1 else None

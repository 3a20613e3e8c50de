"""Plain tables on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console


def print_table(out: Console, headings: list[str], rows: list[list[str]], *, empty: bool = False) -> None:
    """Print a table; without rows nothing, or with ``empty`` its headings. Markup in cells is shown as it is."""
    if rows or empty:
        made = Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in rows:
            made.add_row(*(Text(cell) for cell in row))
        out.print(made, soft_wrap=False)

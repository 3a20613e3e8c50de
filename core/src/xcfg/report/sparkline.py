"""A row of numbers as a row of bars."""

from __future__ import annotations

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-:=+*#"


def sparkline(values: Sequence[float | None], *, plain: bool = False) -> str:
    """Bars from 0 to the largest value; a blank where there is none. ``plain`` draws them in ASCII."""
    known = [value for value in values if value is not None]
    top = max(known, default=0.0)
    bars = PLAIN if plain else BARS
    return "".join(" " if value is None else bars[_height(value, top, len(bars))] for value in values)


def _height(value: float, top: float, levels: int) -> int:
    return 0 if top == 0 else min(int(value / top * levels), levels - 1)

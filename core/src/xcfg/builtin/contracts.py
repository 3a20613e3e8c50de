"""The tolerance contracts shipped as package data, one JSON file each."""

from __future__ import annotations

from importlib.resources import files

from xcfg.model.tolerance import ToleranceContract
from xcfg.plugin.tolerance import parse_contract


def shipped_contracts() -> tuple[ToleranceContract, ...]:
    """Every ``data/tolerance-*.json``, in order of file name."""
    folder = files("xcfg.builtin") / "data"
    shipped = sorted((item for item in folder.iterdir() if item.name.startswith("tolerance-")), key=lambda i: i.name)
    return tuple(parse_contract(item.read_text(encoding="utf-8"), where=item.name) for item in shipped)

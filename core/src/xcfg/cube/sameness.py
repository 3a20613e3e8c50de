"""Whether two cubes hold the same result group, compared byte by byte."""

from __future__ import annotations

from pathlib import Path

import zarr

from xcfg.cube.schema import MEASURED
from xcfg.cube.staging import locate
from xcfg.cube.store import read
from xcfg.cube.stored import open_stored, reading

PARTIAL = ".partial"
"""Suffix of what zarr was writing when it was killed; no part of the cube."""


def differences(path: Path, wanted: Path) -> dict[str, str]:
    """What is wrong with the result group at ``path``, by file below it, where that at ``wanted`` is right.

    The subgroup ``measured`` is outside the comparison.
    """
    here, there = (_files(locate(folder)) for folder in (path, wanted))
    found: dict[str, str] = {}
    for name in sorted(here.keys() | there.keys()):
        if name not in here:
            found[name] = "missing: a rebuild from the attempts has it"
        elif name not in there:
            found[name] = "a rebuild from the attempts does not have it"
        elif here[name].read_bytes() != there[name].read_bytes():
            found[name] = "not what a rebuild from the attempts gives"
    return found


def check_measured(path: Path) -> None:
    """Read the subgroup ``measured`` to its end. Raises ArtifactError where a chunk of it is damaged."""
    place = locate(path)
    group = open_stored(place).group
    with reading(str(place)):
        measured = zarr.open_group(group.store_path / MEASURED, mode="r", zarr_format=3)
        for _, array in measured.arrays():
            read(array)


def _files(folder: Path) -> dict[str, Path]:
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: path for name, path in found.items() if not name.startswith(f"{MEASURED}/") and not name.endswith(PARTIAL)
    }

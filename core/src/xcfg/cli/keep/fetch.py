"""An output folder copied from an object store."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from xcfg.cli.keep.requests import several
from xcfg.cube.objects import Objects
from xcfg.errors import ArtifactError, InvalidInput


def fetch(objects: Objects, target: Path) -> None:
    """Copy everything below a URL into the empty folder ``target``. Raises InvalidInput where it holds no run."""
    there = objects.listed()
    if "run.json" not in there:
        raise InvalidInput("there is no run", where=objects.url, hint="give the URL of `xcfg cube upload`")

    def one(key: str) -> None:
        if ".." in PurePosixPath(key).parts or PurePosixPath(key).is_absolute():
            raise ArtifactError("this name leaves the folder", where=objects.address(key))
        path = target / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(objects.read(key))

    several(one, sorted(there))

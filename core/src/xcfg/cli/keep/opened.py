"""The cube that a command's argument names: a run's folder, a cube, or a URL of either."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.cli.commit import CUBE
from xcfg.errors import ArtifactError

if TYPE_CHECKING:
    from xcfg.cube.reader import Cube


@contextmanager
def opened(place: str) -> Iterator[Cube]:
    """The open cube. Raises ArtifactError where there is none, EnvironmentFault where its store is not reached."""
    from xcfg.cube.objects import connect, is_url, reaching
    from xcfg.cube.reader import open_cube, open_remote

    if not is_url(place):
        folder = Path(place)
        yield open_cube(folder if (folder / "zarr.json").is_file() else folder / CUBE)
        return
    url = place.rstrip("/")
    url = url if url.endswith(".zarr") else f"{url}/{CUBE}"
    objects = connect(url, os.environ)
    if "zarr.json" not in objects.listed():
        raise ArtifactError("there is no result cube", where=url, hint="put one there: xcfg cube upload DIR URL")
    with reaching(url):
        yield open_remote(objects.zarr(), url)

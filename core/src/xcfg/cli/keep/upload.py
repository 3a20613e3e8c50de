"""An output folder on an object store: what was written once is put once, the cube appears last."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import define, field

from xcfg.cli.commit import CUBE
from xcfg.cli.keep.claims import RUN, check_sound, check_superset
from xcfg.cli.keep.requests import several
from xcfg.cli.stored import check_folder
from xcfg.cube.objects import Found, Objects
from xcfg.cube.sameness import PARTIAL
from xcfg.cube.staging import locate
from xcfg.errors import ArtifactError
from xcfg.runner.contents import Kept, documents, written_once
from xcfg.runner.lock import locked

ROOT = f"{CUBE}/zarr.json"
"""Without this object there is no cube: it goes before the first chunk changes and comes back after the last."""


@define(kw_only=True)
class Sent:
    """Objects that were put, with their bytes, and objects that were there already; chunks the cube no longer has."""

    sent: int = 0
    size: int = 0
    present: int = 0
    removed: list[str] = field(factory=list)

    def count(self, done: Iterable[tuple[bool, int]]) -> None:
        """Add objects: whether each was put, and its bytes."""
        for new, size in done:
            self.sent += new
            self.size += size if new else 0
            self.present += not new


def upload_folder(folder: Path, objects: Objects) -> Sent:
    """Bring the objects below a URL up to the folder; what is there already is compared and not sent again.

    Raises InvalidInput where the URL holds another experiment, attempts or cases that the folder does not have, or
    other content under a name that is written once; nothing of it is changed. Raises ArtifactError where the folder
    does not hold by its own seals, EnvironmentFault where the store fails: then nothing is claimed that is not there.
    """
    check_folder(folder)
    with locked(folder):
        check_sound(folder)
        cube = _cube_files(folder)
        there = objects.listed()
        groups = list(written_once(folder))
        check_superset(folder, objects, there, groups)
        sent = Sent()
        if claims := RUN not in there:
            sent.count([_document(objects, there, RUN, folder / RUN)])
        for done in several(lambda group: _send(objects, there, group), groups):
            sent.count(done)
        growing = {path.relative_to(folder).as_posix(): path for path in documents(folder)}
        last = [key for key in growing if "/" not in key and not (claims and key == RUN)]
        first = [key for key in growing if "/" in key]
        sent.count(several(lambda key: _document(objects, there, key, growing[key]), first))
        sent.count([_document(objects, there, key, growing[key]) for key in last])
        _send_cube(objects, there, cube, sent)
        return sent


def _cube_files(folder: Path) -> dict[str, Path]:
    place = locate(folder / CUBE)
    if not (place / "zarr.json").is_file():
        raise ArtifactError("there is no result cube", where=str(place), hint="make it: xcfg cube rebuild")
    files = (path for path in place.rglob("*") if path.is_file() and not path.name.endswith(PARTIAL))
    return {f"{CUBE}/{path.relative_to(place).as_posix()}": path for path in sorted(files)}


def _send(objects: Objects, there: Mapping[str, Found], group: Sequence[Kept]) -> list[tuple[bool, int]]:
    """Put a group in its order, so that the file that says it is complete comes last."""
    done = []
    for item in group:
        data = item.path.read_bytes()
        if item.digest and hashlib.sha256(data).hexdigest() != item.digest:
            raise ArtifactError("the content is not what was sealed", where=str(item.path))
        done.append((item.key not in there and objects.put_new(item.key, data), len(data)))
    return done


def _document(objects: Objects, there: Mapping[str, Found], key: str, path: Path) -> tuple[bool, int]:
    """Bring a document that grows up to date."""
    data = path.read_bytes()
    if key not in there:
        return objects.put_new(key, data), len(data)
    held = objects.holds(key, there[key], data)
    if not held:
        objects.replace(key, there[key], data)
    return not held, len(data)


def _send_cube(objects: Objects, there: Mapping[str, Found], cube: Mapping[str, Path], sent: Sent) -> None:
    """Take the cube away, send what differs, and let it appear again; an equal one is left alone."""
    content = {key: path.read_bytes() for key, path in cube.items()}
    equal = several(lambda key: key in there and objects.holds(key, there[key], content[key]), content)
    changed = {key for key, held in zip(content, equal, strict=True) if not held}
    gone = sorted(key for key in there if key.startswith(f"{CUBE}/") and key not in cube)
    if changed or gone:
        changed.add(ROOT)
        objects.delete([ROOT] if ROOT in there else [])
        objects.delete([key for key in (*gone, *sorted(changed - {ROOT})) if key in there])
        several(lambda key: objects.put_new(key, content[key]), sorted(changed - {ROOT}))
        objects.put_new(ROOT, content[ROOT])
    sent.count((key in changed, len(data)) for key, data in content.items())
    sent.removed.extend(gone)

"""Whether a folder may be uploaded to a URL: sound by its own seals, and all that is there is part of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve

from xcfg.cli.keep.requests import several
from xcfg.cube.objects import Found, Objects
from xcfg.errors import ArtifactError, Fault, InvalidInput
from xcfg.runner.artifacts import load_plan
from xcfg.runner.audit import audit
from xcfg.runner.binding import check, read_folder
from xcfg.runner.contents import Kept
from xcfg.runner.store import Store

RUN, PLAN = "run.json", "plan.json"

_ELSEWHERE = "choose another URL; nothing was changed"


def check_sound(folder: Path) -> None:
    """Raise ArtifactError, naming everything, where the folder does not hold by its own seals."""
    found = audit(folder)
    if found.problems:
        faults = [Fault(message=item.message, where=str(folder / item.path)) for item in found.problems]
        hint = "nothing was sent; restore these, or delete an attempt that a newer one has replaced"
        raise ArtifactError(faults=[*faults[:-1], evolve(faults[-1], hint=hint)])


def check_superset(
    folder: Path, objects: Objects, there: Mapping[str, Found], groups: Sequence[Sequence[Kept]]
) -> None:
    """Refuse, before anything is sent, a URL whose content would not be part of what the folder holds."""
    if there and RUN not in there:
        some = ", ".join(sorted(there)[:3])
        raise InvalidInput(f"it is not empty and holds no run of ours: {some}", where=objects.url, hint=_ELSEWHERE)
    if there:
        with tempfile.TemporaryDirectory(prefix="xcfg-upload-") as place:
            for key in {RUN, PLAN} & there.keys():
                (Path(place) / key).write_bytes(objects.read(key))
            _check_documents(folder, objects, Path(place), planned=PLAN in there)
    ours = {item.key for group in groups for item in group}
    theirs = {key for key in there if key.startswith(("sides/", "tokens/", "launches/"))}
    if foreign := sorted(theirs - ours):
        message = f"it holds {len(foreign)} files that this folder does not have, such as {foreign[0]}"
        raise InvalidInput(message, where=objects.url, hint=f"merge them first: xcfg cube merge {folder} {objects.url}")
    present = [item for group in groups for item in group if item.key in there]
    same = several(lambda item: objects.holds(item.key, there[item.key], item.path.read_bytes()), present)
    faults = [
        fault for item, held in zip(present, same, strict=True) if not held for fault in objects.other(item.key).faults
    ]
    if faults:
        raise InvalidInput(faults=faults)


def _check_documents(folder: Path, objects: Objects, place: Path, *, planned: bool) -> None:
    try:
        check(Store(place), read_folder(Store(folder)).binding)
    except InvalidInput as error:
        reason = error.faults[0].message.removeprefix("this folder ")
        raise InvalidInput(f"what is there {reason}", where=objects.url, hint=_ELSEWHERE) from error
    missing = (
        {case.id for case in load_plan(place).cases} - {case.id for case in load_plan(folder).cases} if planned else ()
    )
    if missing:
        message = f"its plan has {len(missing)} cases that this folder does not have, such as {min(missing)}"
        raise InvalidInput(message, where=objects.url, hint=f"merge them first: xcfg cube merge {folder} {objects.url}")

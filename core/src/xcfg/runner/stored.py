"""Documents of an output folder, read back strictly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from attrs import evolve

from xcfg.errors import ArtifactError, InvalidInput
from xcfg.model.codec import load_json, structure
from xcfg.model.json import Json

T = TypeVar("T")


def read_document(path: Path, cls: type[T], schema: str, ready: Callable[[Json], Json] = lambda data: data) -> T:
    """The content of a JSON file of ``schema`` as a value of ``cls``. Raises ArtifactError, naming file and field.

    ``ready`` may put values of model classes in the place of their JSON.
    """
    try:
        found = structure(ready(load_json(path.read_bytes(), where=str(path))), cls)
    except InvalidInput as error:
        raise ArtifactError(
            faults=[
                fault
                if str(path) in fault.where
                else evolve(fault, where=" ".join(filter(None, (str(path), fault.where))))
                for fault in error.faults
            ]
        ) from error
    if (stored := getattr(found, "schema", "")) != schema:
        raise ArtifactError(f"schema {stored!r}, expected {schema!r}", where=str(path))
    return found

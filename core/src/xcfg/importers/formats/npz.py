"""npz: an archive of numpy arrays, one row with all of them; what numpy would unpickle is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xcfg.errors import ArtifactError
from xcfg.importers.formats.arrays import Arrays
from xcfg.importers.formats.pickled import refuse_pickle
from xcfg.model.recorded import Row

_RAGGED = (
    "an array of objects is a pickle; store rows of different lengths end to end in one flat array with their lengths "
    "in response_length, or each row under its own key ID/response_ids"
)


def read(path: Path) -> Iterator[Row]:
    """One row whose fields are the arrays, each read when it is asked for. Raises ArtifactError."""
    refuse_pickle(path)
    try:
        archive = np.load(path, allow_pickle=False)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise ArtifactError(f"not an npz archive: {error}", where=path.name) from error
    if isinstance(archive, np.ndarray):
        raise ArtifactError("one array without a name and no archive", where=path.name, hint="write it with np.savez")
    twice = [name for name, count in Counter(archive.files).items() if count > 1]
    if twice:
        raise ArtifactError(f"array {twice[0]!r} appears twice", where=path.name)

    def load(name: str) -> object:
        try:
            return archive[name]
        except MemoryError:
            raise
        except Exception as error:  # a damaged header fails in numpy's parser, zip's or zlib's own way
            hint = _RAGGED if "pickle" in str(error) else ""
            raise ArtifactError(f"array {name!r} cannot be read: {error}", where=path.name, hint=hint) from error

    yield Row(place=path.name, fields=Arrays(archive.files, load))

"""The declared token source as it enters every case id."""

from __future__ import annotations

import hashlib
from pathlib import Path

from xcfg.errors import InvalidInput
from xcfg.model.codec import unstructure
from xcfg.model.experiment import TokenSource
from xcfg.model.json import Json


def declared_tokens(source: TokenSource, root: Path, limit: int | None = None) -> dict[str, Json]:
    """The source with the SHA-256 of the file it names: changed prompts are other tokens, and so is a part of them.

    Raises InvalidInput where the file cannot be read.
    """
    name = source.recorded if source.sample is None else source.sample.prompts
    try:
        digest = hashlib.sha256((root / name).read_bytes()).hexdigest()
    except OSError as error:
        raise InvalidInput(f"the token file cannot be read: {error.strerror}", where=str(root / name)) from error
    declared: Json = {"recorded": name} if source.sample is None else {"sample": unstructure(source.sample)}
    return {**declared, "sha256": digest, **({} if limit is None else {"limit": limit})}

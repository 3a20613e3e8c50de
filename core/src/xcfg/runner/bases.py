"""Checkpoints that are declared to be made from another: the declarations, held against each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import evolve

from xcfg.errors import InvalidInput
from xcfg.model.codec import load_json
from xcfg.model.experiment import Checkpoint
from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.runner.checkpoints import resolve

DECLARATION = "xcfg-base.json"
"""A file beside the weights in which whoever made them says from what: ``{"base": {"weights": DIGEST}}``."""


def with_bases(
    root: str, digests: Mapping[str, CheckpointDigest], used: Iterable[Checkpoint]
) -> dict[str, CheckpointDigest]:
    """The digests by path, those of derived checkpoints with their base's. Every path must be among ``digests``.

    Raises InvalidInput where two declarations, or one and the file in the checkpoint's own folder, contradict.
    """
    bases: dict[str, str] = {}
    for item in used:
        if item.derived_from and bases.setdefault(item.path, item.derived_from) != item.derived_from:
            message = f"declared to be made from {bases[item.path]} and from {item.derived_from}"
            raise InvalidInput(message, where=item.path, hint="one checkpoint has one base")
    for path, base in bases.items():
        _check(resolve(root, path), base, digests[base].weights)
    return {
        path: evolve(found, base=digests[bases[path]].weights) if path in bases else found
        for path, found in digests.items()
    }


def _check(folder: Path, base: str, digest: str) -> None:
    file = folder / DECLARATION
    if not file.exists():
        return
    try:
        said = load_json(file.read_bytes(), where=str(file))["base"]["weights"]
    except (OSError, KeyError, TypeError) as error:
        message = f"it names no base: {type(error).__name__} {error}"
        raise InvalidInput(message, where=str(file), hint='{"base": {"weights": DIGEST}} is needed') from error
    if said != digest:
        message = f"made from weights {said!s:.12}, and those of {base} are {digest:.12}"
        raise InvalidInput(message, where=str(file), hint="give the directory it was made from as its base")

"""Content digests of the checkpoints a plan names, taken by the parent before anything is launched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xcfg.errors import InvalidInput
from xcfg.model.codec import load_json
from xcfg.model.json import Json
from xcfg.plugin.checkpoint import CheckpointDigest, digest_checkpoint
from xcfg.runner.durable import encode, replace_changed


def resolve(root: str, path: str) -> Path:
    """A checkpoint path of an experiment as an absolute path; relative ones start at the experiment's folder."""
    return (Path(root) / Path(path).expanduser()).resolve()


def digest_all(root: str, paths: list[str], cache: Path) -> dict[str, CheckpointDigest]:
    """Digest of each checkpoint. ``cache`` (read only) holds digests by the files' size and time of change.

    Raises InvalidInput naming each path that is no model directory or holds no weights.
    """
    known = _read(cache)
    return {path: _digest(resolve(root, path), known) for path in sorted(set(paths))}


def remember(root: str, digests: Mapping[str, CheckpointDigest], cache: Path) -> None:
    """Keep the digests for the next run of the folder that ``cache`` lies in."""
    known = _read(cache)
    for path, found in digests.items():
        folder = resolve(root, path)
        known[str(folder)] = {"stat": _stat(folder), "weights": found.weights, "tokenizer": found.tokenizer}
    replace_changed(cache, encode(known))


def _digest(folder: Path, known: Mapping[str, Json]) -> CheckpointDigest:
    entry = known.get(str(folder))
    if entry is not None and folder.is_dir() and entry["stat"] == _stat(folder):
        return CheckpointDigest(weights=entry["weights"], tokenizer=entry["tokenizer"])
    try:
        found = digest_checkpoint(folder)
    except OSError as error:
        raise InvalidInput(
            f"the checkpoint is unreadable: {error}",
            where=str(folder),
            hint="checkpoint.path is a Hugging Face model directory, relative to the experiment file",
        ) from error
    if not found.weights:
        raise InvalidInput("the checkpoint directory holds neither weights nor config.json", where=str(folder))
    return found


def _stat(folder: Path) -> list[Json]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [[path.name, path.stat().st_size, path.stat().st_mtime_ns, path.stat().st_ino] for path in files]


def _read(cache: Path) -> dict[str, Json]:
    return dict(load_json(cache.read_bytes(), where=str(cache))) if cache.exists() else {}

"""The token batch of a run, frozen on disk under a seal and never written again."""

from __future__ import annotations

import shutil
from pathlib import Path

from attrs import evolve

from xcfg.errors import ArtifactError, InvalidInput
from xcfg.model.json import Json
from xcfg.model.sample import TokenBatch
from xcfg.runner.durable import encode, room, sync_folder, write_new
from xcfg.runner.seal import seal, sealed, verify
from xcfg.runner.tokens import batch_lines, logprob_lines, read_batch, read_logprobs

SUBJECT = "tokens"
BATCH = "batch.jsonl"
LOGPROBS = "sampled_logprobs.jsonl"


def load_frozen(folder: Path) -> TokenBatch | None:
    """The frozen batch, or None where none was frozen. Raises ArtifactError where it is damaged."""
    if not folder.exists():
        return None
    if not sealed(folder):
        raise ArtifactError("the token batch has no seal", where=str(folder), hint="restore it or choose another --out")
    verify(folder, SUBJECT)
    try:
        batch = read_batch(folder / BATCH)
        if not (folder / LOGPROBS).exists():
            return batch
        return evolve(batch, sampled_logprobs=read_logprobs(folder / LOGPROBS, batch))
    except InvalidInput as error:
        raise ArtifactError(faults=error.faults) from error


def freeze_tokens(folder: Path, batch: TokenBatch, source: Json) -> None:
    """Freeze ``batch``; ``source`` says where it comes from. The folder appears complete or not at all.

    Raises ValueError where a sampled logprob is not finite, EnvironmentFault where there is no room.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        write_new(partial / BATCH, batch_lines(batch))
        if batch.sampled_logprobs is not None:
            write_new(partial / LOGPROBS, logprob_lines(batch))
        write_new(partial / "source.json", encode({"schema": "xcfg.tokens/1", "digest": batch.digest(), **source}))
        with room(partial):
            seal(partial, SUBJECT)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync_folder(folder.parent)

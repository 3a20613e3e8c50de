"""Starts the player on one or more ranks and reads what they gave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict

from xcfg.model.codec import unstructure
from xcfg.model.json import thaw
from xcfg.model.sample import Samples, TokenBatch, concatenate
from xcfg_torch.testing.play import Play

_FLAT_DTYPES = {"action_mask": np.bool_, "logprobs": np.float32}


def play_ranks(
    what: Play, batch: TokenBatch, folder: Path, *, ranks: int, elastic: bool = True
) -> list[dict[str, Any]]:
    """Play ``what`` on ``ranks`` processes; one document a rank, with ``samples`` as :class:`Samples`, one a time."""
    folder.mkdir(parents=True)
    path = folder / "spec.json"
    path.write_text(json.dumps({"play": thaw(asdict(what)), "batch": unstructure(batch)}), encoding="utf-8")
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if elastic else []
    command = [sys.executable, *launcher, "-m", "xcfg_torch.testing.play", str(path)]
    finished = subprocess.run(command, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True)
    if finished.returncode:
        raise AssertionError(finished.stderr[-4000:])
    documents = [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(ranks)]
    for document in documents:
        document["samples"] = [_samples(arrays) for arrays in document["samples"]]
    return documents


def joined(documents: list[dict[str, Any]], time: int = 0) -> Samples:
    """The rows of all ranks, ordered by sequence."""
    return concatenate([document["samples"][time] for document in documents])


def _samples(arrays: dict[str, list[Any]]) -> Samples:
    return Samples(
        **{name: np.array(values, dtype=_FLAT_DTYPES.get(name, np.int64)) for name, values in arrays.items()}
    )

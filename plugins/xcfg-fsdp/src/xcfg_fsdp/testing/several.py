"""Plays several configurations one after the other on the ranks of one launch, each on an engine of its own.

They meet in one process group: torch forgets a group that it destroyed, and the store of the launcher does not.

As a program, ``python -m xcfg_fsdp.testing.several SPEC.json`` plays one rank and writes ``rank-N.json`` beside the
specification: what every play gave, or the error that ended it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch.distributed as dist
from attrs import asdict, frozen

from xcfg.errors import XcfgError
from xcfg.model.capability import Unobservable
from xcfg.model.codec import structure, unstructure
from xcfg.model.json import Json, thaw
from xcfg.model.sample import TokenBatch
from xcfg_fsdp import base
from xcfg_torch.testing.play import Play, play


@frozen(kw_only=True)
class Ranks:
    """What the ranks gave for one play: one document a rank, or the one error all of them raised."""

    documents: tuple[Mapping[str, Json], ...]
    error: str = ""

    @property
    def logprobs(self) -> np.ndarray:
        """Logprobs (float32, nats) of all sequences, in their order."""
        rows = [item for document in self.documents for item in document["rows"]]
        return np.concatenate([np.array(row, dtype=np.float32) for _, row in sorted(rows)])

    def observed(self, knob: str) -> Json:
        """The value every rank read back. Raises AssertionError where they differ."""
        values = [document["observed"][knob] for document in self.documents]
        assert all(value == values[0] for value in values), (knob, values)
        return values[0]


def play_several(plays: Mapping[str, Play], batch: TokenBatch, folder: Path, *, ranks: int) -> Mapping[str, Ranks]:
    """Play each on ``ranks`` processes over gloo, in one launch."""
    folder.mkdir(parents=True)
    path = folder / "spec.json"
    wanted = {name: thaw(asdict(item)) for name, item in plays.items()}
    path.write_text(json.dumps({"plays": wanted, "batch": unstructure(batch)}), encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    finished = subprocess.run(
        [*command, "-m", "xcfg_fsdp.testing.several", str(path)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert not finished.returncode, finished.stderr[-4000:]
    found = [json.loads((folder / f"rank-{rank}.json").read_text(encoding="utf-8")) for rank in range(ranks)]
    return {name: _joined([document[name] for document in found]) for name in plays}


def _joined(documents: list[dict[str, Any]]) -> Ranks:
    errors = [document.get("error", "") for document in documents]
    assert len(set(errors)) == 1, errors
    return Ranks(documents=() if errors[0] else tuple(documents), error=errors[0])


def main(path: Path) -> None:
    """Play the rank that the environment names and write what it gave."""
    document = json.loads(path.read_text(encoding="utf-8"))
    batch, rank = structure(document["batch"], TokenBatch), int(os.environ["RANK"])
    dist.init_process_group("gloo")
    with patch.object(base, "join"), patch.object(base, "leave"):
        given = {name: _played(Play(**item), batch, rank) for name, item in document["plays"].items()}
    dist.barrier()
    (path.parent / f"rank-{rank}.json").write_text(json.dumps(given), encoding="utf-8")


def _played(what: Play, batch: TokenBatch, rank: int) -> dict[str, Any]:
    try:
        played = play(what, batch, rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
    except (XcfgError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    samples, info = played.scored[-1].samples, played.scored[-1].rank
    rows = [
        (int(sequence), samples.logprobs[samples.response_slice(row)].tolist())
        for row, sequence in enumerate(samples.sequence)
    ]
    return {
        "rows": rows,
        "observed": {
            knob: {"unobservable": value.reason} if isinstance(value, Unobservable) else value
            for knob, value in played.observed.items()
        },
        "parallel": thaw(info.parallel),
        "facts": thaw(info.facts),
        "unchanged": played.states[0] == played.states[1],
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # without the interpreter's tear-down, in which gloo was seen to abort

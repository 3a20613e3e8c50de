"""Plays one engine in a process of its own: knobs in, values read back and logprobs out, or the error it ended with.

``python -m xcfg_vllm.testing.play FOLDER`` reads ``play.json`` there and writes ``played.json``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from xcfg.errors import UnsupportedError
from xcfg.model.capability import Unobservable, Unsupported
from xcfg.model.codec import structure, unstructure
from xcfg.model.json import Json, thaw
from xcfg.model.sample import TokenBatch
from xcfg.model.scorer import Role
from xcfg.plugin import ScoreRequest, ScorerSpec, Settings
from xcfg_vllm.environment import FIXED


def play(
    folder: Path,
    checkpoint: Path,
    batch: TokenBatch,
    knobs: Mapping[str, Json],
    steps: Sequence[Mapping[str, Json]] = ({},),
) -> dict[str, Any]:
    """Open one engine with ``knobs`` and score ``batch`` once for each of ``steps`` (request-time knobs).

    ``folder`` is created for what is exchanged. The answer has ``error`` (kind and message) where the engine did not
    open, else ``steps`` with ``observed``, ``logprobs`` and ``facts`` or an ``error`` each; ``unchanged`` says whether
    the state digest was one throughout, ``left`` counts processes that outlived the engine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    asked = {
        "checkpoint": str(checkpoint),
        "batch": unstructure(batch),
        "knobs": dict(knobs),
        "steps": [dict(step) for step in steps],
    }
    (folder / "play.json").write_text(json.dumps(asked), encoding="utf-8")
    environment = {**os.environ, **FIXED, "VLLM_CACHE_ROOT": str(folder / "cache")}
    with (folder / "log").open("w", encoding="utf-8") as log:
        done = subprocess.run(
            [sys.executable, "-m", "xcfg_vllm.testing.play", str(folder)], env=environment, stdout=log, stderr=log
        )
    told = folder / "played.json"
    if not told.exists():
        tail = (folder / "log").read_text(encoding="utf-8", errors="replace")[-4000:]
        raise RuntimeError(f"the engine's process ended with {done.returncode} and told nothing:\n{tail}")
    played: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    return played


def main(folder: Path) -> None:
    """Play what ``folder`` asks for."""
    asked = json.loads((folder / "play.json").read_text(encoding="utf-8"))
    played: dict[str, Any]
    try:
        played = _play(asked)
    except Exception as error:
        played = {"error": _error(error)}
    played["left"] = _left()
    (folder / "played.json").write_text(json.dumps(played), encoding="utf-8")


def _play(asked: Mapping[str, Any]) -> dict[str, Any]:
    from xcfg_vllm.materialize import VllmMaterializer
    from xcfg_vllm.scorer import VllmScorer

    started = time.perf_counter()
    batch = structure(asked["batch"], TokenBatch)
    settings = _settings(VllmMaterializer(), asked["knobs"])
    os.environ.update(settings.env)
    _probe(VllmMaterializer(), asked["knobs"], asked["checkpoint"])
    scorer = VllmScorer()
    spec = ScorerSpec(
        role=Role.ROLLOUT,
        checkpoint=Path(asked["checkpoint"]),
        trust_remote_code=False,
        rank=0,
        world_size=1,
        engine=settings.engine,
    )
    try:
        scorer.open(spec)
        opened = time.perf_counter()
        identity = unstructure(scorer.identity())
        before = scorer.state_digest()
        steps = [_step(scorer, batch, {**asked["knobs"], **step}) for step in asked["steps"]]
        unchanged = scorer.state_digest() == before
    finally:
        scorer.close()
    seconds = {"open": opened - started, "all": time.perf_counter() - started}
    return {"identity": thaw(identity), "steps": steps, "unchanged": unchanged, "seconds": seconds}


def _settings(materializer: Any, knobs: Mapping[str, Json]) -> Settings:
    settings = Settings()
    for knob, value in knobs.items():
        materializer.apply(knob, value, settings)
    return settings


def _probe(materializer: Any, knobs: Mapping[str, Json], checkpoint: str) -> None:
    for knob, value in knobs.items():
        found = materializer.probe(knob, value, {"role": "rollout", "checkpoint": checkpoint, "knobs": knobs})
        if isinstance(found, Unsupported):
            raise UnsupportedError(f"{knob} = {value}: {found.reason}", where=knob)


def _step(scorer: Any, batch: TokenBatch, knobs: Mapping[str, Json]) -> dict[str, Any]:
    from xcfg_vllm.materialize import VllmMaterializer
    from xcfg_vllm.readback import READERS

    materializer = VllmMaterializer()
    request = _settings(materializer, knobs).request
    started = time.perf_counter()
    try:
        scored = scorer.score(batch, ScoreRequest(settings=request))
    except Exception as error:
        return {"error": _error(error)}
    seconds = time.perf_counter() - started
    ends = [0]
    for length in scored.samples.response_length:
        ends.append(ends[-1] + int(length))
    rows = scored.samples.logprobs
    return {
        "observed": {knob: _plain(materializer.read_back(knob, scorer.live)) for knob in READERS},
        "logprobs": [rows[start:end].tolist() for start, end in pairwise(ends)],
        "facts": thaw(unstructure(scored.rank)),
        "semantics": thaw(unstructure(scored.semantics)),
        "seconds": seconds,
    }


def _plain(value: Any) -> Any:
    return {"unobservable": value.reason} if isinstance(value, Unobservable) else thaw(value)


def _error(error: Exception) -> dict[str, str]:
    return {"kind": type(error).__name__, "message": str(error)}


def _left() -> int:
    """Processes this one started that are still there; Python's own helper ends with it and is not counted."""
    left = 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            left += process.status() != psutil.STATUS_ZOMBIE and "resource_tracker" not in " ".join(process.cmdline())
    return left


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Plays the child's sequence for one rank: settings, environment, engine, operators, scores, read-back.

As a program, ``python -m xcfg_torch.testing.play SPEC.json`` plays one rank, alone or under torch's elastic launcher,
and writes ``rank-N.json`` beside the specification.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from xcfg.model.capability import Unobservable, Unsupported
from xcfg.model.codec import structure
from xcfg.model.json import Json, thaw
from xcfg.model.sample import TokenBatch
from xcfg.model.scorer import Role
from xcfg.plugin import Scored, ScoreRequest, ScorerIdentity, ScorerSpec, Settings


@frozen(kw_only=True)
class Play:
    """What to play: import strings, knobs with their values, and how often to score."""

    scorer: str
    materializer: str
    knobs: Mapping[str, Json]
    backend: str
    checkpoint: str
    role: str = "training"
    options: Mapping[str, Json] = {}
    times: int = 1


@frozen(kw_only=True)
class Played:
    """What a rank gave: scores of every time, values read back, state digests before and after, seconds to open."""

    scored: tuple[Scored, ...]
    observed: Mapping[str, Json]
    identity: ScorerIdentity
    states: tuple[str, str]
    bound: Any
    open_s: float
    score_s: float


def play(what: Play, batch: TokenBatch, *, rank: int = 0, world_size: int = 1) -> Played:
    """Play one rank in this process. Values that cannot be observed come back as ``Unobservable``."""
    materializer = load(what.materializer)()
    settings = Settings()
    for knob, value in what.knobs.items():
        found = materializer.probe(knob, value, {"role": what.role, "knobs": what.knobs})
        if isinstance(found, Unsupported):
            raise ValueError(found.reason)
        materializer.apply(knob, value, settings)
    os.environ.update(settings.env)
    started = time.perf_counter()
    scorer = load(what.scorer)()
    spec = ScorerSpec(
        role=Role(what.role),
        checkpoint=Path(what.checkpoint),
        trust_remote_code=False,
        rank=rank,
        world_size=world_size,
        engine=settings.engine,
    )
    try:
        scorer.open(spec)
        opened = time.perf_counter()
        identity = scorer.identity()
        backend = load(what.backend)()
        request = scorer.kernel_request("selected_logprob", what.options)
        with backend.bind(request) as bound:
            before = scorer.state_digest()
            asked = ScoreRequest(settings=settings.request, operators={"selected_logprob": bound})
            begun = time.perf_counter()
            scored = tuple(scorer.score(batch, asked) for _ in range(what.times))
            ended = time.perf_counter()
            after = scorer.state_digest()
            observed = {knob: materializer.read_back(knob, scorer.live) for knob in what.knobs}
            identified = backend.identify(bound)
    finally:
        scorer.close()
    return Played(
        scored=scored,
        observed=observed,
        identity=identity,
        states=(before, after),
        bound=identified,
        open_s=opened - started,
        score_s=(ended - begun) / what.times,
    )


def load(target: str) -> Any:
    """The object of an import string ``module:name``."""
    module, name = target.split(":")
    return getattr(import_module(module), name)


def main(path: Path) -> None:
    """Play the rank that the environment names and write what it gave."""
    document = json.loads(path.read_text(encoding="utf-8"))
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    batch = structure(document["batch"], TokenBatch)
    played = play(Play(**document["play"]), batch, rank=rank, world_size=world_size)
    written = {
        "samples": [
            {name: array.tolist() for name, array in scored.samples.arrays().items()} for scored in played.scored
        ],
        "rank": thaw(asdict(played.scored[-1].rank)),
        "semantics": thaw(asdict(played.scored[-1].semantics)),
        "observed": {
            knob: {"unobservable": value.reason} if isinstance(value, Unobservable) else value
            for knob, value in played.observed.items()
        },
        "states": played.states,
        "bound": asdict(played.bound),
        "checkpoint_digest": played.identity.checkpoint_digest,
        "recorded": thaw(played.identity.recorded),
        "open_s": played.open_s,
        "score_s": played.score_s,
    }
    (path.parent / f"rank-{rank}.json").write_text(json.dumps(written), encoding="utf-8")


def _leave() -> None:
    """End a rank without the interpreter's tear-down, in which gloo was seen to abort."""
    sys.stdout.flush()
    sys.stderr.flush()
    if "TORCHELASTIC_RUN_ID" in os.environ:
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    _leave()

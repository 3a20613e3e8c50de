"""What engines took in earlier runs of a folder and take in this one, and what others will take by that."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

from attrs import evolve, field, frozen

from xcfg.errors import InvalidInput
from xcfg.model.codec import load_json
from xcfg.model.json import Json, tupled
from xcfg.model.scorer import Role
from xcfg.runner.exits import NAME as EXIT
from xcfg.runner.seal import sealed
from xcfg.runner.store import Store


@frozen(kw_only=True)
class EngineTime:
    """An engine that ended well. ``start_s``: seconds besides sampling and scoring; ``score_s``: each side run's."""

    role: Role
    scorer: str
    start_s: float
    score_s: tuple[float, ...] = field(converter=tupled)


@frozen(kw_only=True)
class Timings:
    """Measured engines. Nothing is said of a scorer that was not measured in the role."""

    engines: tuple[EngineTime, ...] = field(default=(), converter=tupled)

    def estimate(self, role: Role, scorer: str, sides: int) -> float | None:
        """Seconds of an engine that scores ``sides`` side runs: medians of the same scorer; None where unknown."""
        like = [item for item in self.engines if (item.role, item.scorer) == (role, scorer)]
        scores = [seconds for item in like for seconds in item.score_s]
        if not like or (sides and not scores):
            return None
        return median(item.start_s for item in like) + (sides * median(scores) if sides else 0.0)

    def plus(self, engine: EngineTime) -> Timings:
        """With one engine more."""
        return evolve(self, engines=(*self.engines, engine))


def makespan(seconds: Iterable[float | None], jobs: int) -> float | None:
    """Wall seconds until engines are done that are taken in this order, ``jobs`` at a time; None if one is unknown."""
    free = [0.0] * jobs
    for each in seconds:
        if each is None:
            return None
        heapq.heappush(free, heapq.heappop(free) + each)
    return max(free)


def measured(store: Store) -> Timings:
    """From the sealed attempts of a folder and the launches that made them; empty where there is none.

    An attempt whose files cannot be read measures nothing: the run itself says what is wrong with it.
    """
    launches: dict[str, list[Mapping[str, Json]]] = {}
    sides = store.root / "sides"
    for side in sorted(sides.iterdir()) if sides.is_dir() else ():
        for _, path in store.attempts(side.name):
            if sealed(path) and (found := _read(path)) is not None:
                launches.setdefault(found["launch"], []).append(found)
    made = (_engine(store.launch(name), attempts) for name, attempts in sorted(launches.items()))
    return Timings(engines=[item for item in made if item is not None])


def _read(path: Path) -> dict[str, Json] | None:
    try:
        side = _load(path / "requested.json")["side"]
        launch = _load(path / "environment.json")["launch"]
        phases = _load(path / "timing.json")["phases"]
        return {"role": Role(side["role"]), "scorer": side["scorer"], "launch": launch, "phases": phases}
    except (OSError, InvalidInput, KeyError, TypeError, ValueError):
        return None


def _engine(launch: Path, attempts: list[Mapping[str, Json]]) -> EngineTime | None:
    try:
        exit = _load(launch / EXIT)
        whole = exit["complete"] and exit["code"] == 0
        seconds = float(exit["seconds"])
    except (OSError, InvalidInput, KeyError, TypeError, ValueError):
        return None
    if not whole:
        return None
    phases = [item["phases"] for item in attempts]
    spent = sum(item.get(name, 0.0) for item in phases for name in ("sample", "score"))
    return EngineTime(
        role=attempts[0]["role"],
        scorer=attempts[0]["scorer"],
        start_s=max(0.0, seconds - spent),
        score_s=[item["score"] for item in phases if "score" in item],
    )


def _load(path: Path) -> Json:
    return load_json(path.read_bytes(), where=str(path))

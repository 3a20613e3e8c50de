"""Kills at random points of a run, and what must hold after each and at the end.

A folder is run, and killed, and run again, until it has had its kills or is done; then it is run to its end. The victim
is the coordinator or one of its descendants. Which, and when, comes from a seed; how far the run got by then does not.
"""

import hashlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

import psutil
from attrs import asdict, define, field, frozen

from .place import Done, Place, Running

MEASURED = "measured"
PARENT, CHILD, OTHER = "parent", "child", "other"
VICTIMS = (PARENT, PARENT, CHILD, OTHER)
"""In equal shares, in an order that is drawn. Others are guards, an elastic launcher, an engine's own workers."""


@frozen
class Whole:
    """An undisturbed run: its document, the bytes of its result group, and how long a run and a resume take."""

    document: dict
    result: dict[str, str]
    run_s: float
    resume_s: float
    sides: int


@define
class Counts:
    """What happened, to be printed."""

    kills: Counter[tuple[str, str]] = field(factory=Counter)
    codes: Counter[int] = field(factory=Counter)
    attempts: Counter[str] = field(factory=Counter)
    folders: int = 0
    resumed: int = 0
    ended_before: int = 0

    @classmethod
    def sum(cls, parts: Iterable["Counts"]) -> "Counts":
        total = cls()
        for part in parts:
            for name, value in asdict(part, recurse=False).items():
                setattr(total, name, getattr(total, name) + value)
        return total

    def __str__(self) -> str:
        kills = "\n".join(f"  {who:10} {at:10} {number:5}" for (who, at), number in sorted(self.kills.items()))
        attempts = ", ".join(f"{number} {state}" for state, number in sorted(self.attempts.items()))
        codes = ", ".join(f"{number} x {code}" for code, number in sorted(self.codes.items()))
        return (
            f"{sum(self.kills.values())} kills in {self.folders} folders\n{kills}\n"
            f"  {self.resumed} resumed runs, {self.ended_before} ended before they could be killed\n"
            f"  exit codes: {codes}\n  attempts: {attempts}"
        )


def undisturbed(place: Place, *options: object) -> Whole:
    """Run a folder to its end and once more."""
    started = time.monotonic()
    first = place.run(*options)
    between = time.monotonic()
    assert first.code in (0, 1), first
    again = place.run(*options)
    assert again.document["engines"]["constructed"] == 0, again.err
    return Whole(
        document=first.document,
        result=result_group(place.out),
        run_s=between - started,
        resume_s=time.monotonic() - between,
        sides=len(place.attempts()),
    )


def result_group(out: Path) -> dict[str, str]:
    """SHA-256 of every file of the cube but those of the group ``measured``: arrays, attributes, chunk by chunk."""
    cube = out / "cube.zarr"
    names = {path.relative_to(cube).as_posix(): path for path in cube.rglob("*") if path.is_file()}
    kept = {name: path for name, path in names.items() if name.split("/")[0] != MEASURED}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(kept.items())}


def chaos(
    place: Place,
    whole: Whole,
    seed: int,
    kills: int,
    counts: Counts,
    *options: object,
    victims: Sequence[str] = VICTIMS,
) -> None:
    """Kill a folder's runs up to ``kills`` times, resume each time, and hold the end against an undisturbed run."""
    draw = random.Random(seed)
    order = [*victims] * -(-kills // len(victims))
    draw.shuffle(order)
    for chosen in order[:kills]:
        sealed = seals(place)
        left = 1 - len(sealed) / whole.sides
        delay = draw.uniform(0, whole.resume_s + left * (whole.run_s - whole.resume_s))
        wanted = chosen if left else PARENT
        former = frozenset(path.name for path in place.out.glob("launches/*"))
        running = place.start(*options)
        hit = strike(running, place.out, wanted, delay, draw, former)
        ended = place.wait(running)
        counts.codes[ended.code] += 1
        counts.resumed += bool(sealed)
        assert ended.code in (0, 1, 7, -signal.SIGKILL), ended
        assert place.left() == []
        _kept(sealed, place)
        if hit is None:
            counts.ended_before += 1
            break  # all is done: another folder has more to kill
        counts.kills[hit] += 1
    last = place.run(*options)
    counts.resumed += 1
    counts.codes[last.code] += 1
    _same(place, whole, last)
    counts.folders += 1
    counts.attempts.update(state for states in place.attempts().values() for state in states)


def strike(
    running: Running, out: Path, wanted: str, delay: float, draw: random.Random, former: Set[str]
) -> tuple[str, str] | None:
    """Kill the coordinator or a descendant after ``delay`` seconds: who it was and what the run was doing.

    None where the run ended before. Where there is no such process yet, it waits for one.
    """
    due = time.monotonic() + delay
    while running.process.poll() is None:
        if time.monotonic() < due:
            time.sleep(0.01)
            continue
        try:
            victims = [item for item in _tree(running.process.pid) if _wanted(item, wanted)]
            if victims:
                victim = draw.choice(victims)
                who, at = _kind(victim), phase(out, former)
                os.kill(victim.pid, signal.SIGKILL)
                return who, at
        except (psutil.Error, ProcessLookupError):
            continue  # it had just ended by itself
        time.sleep(0.005)
    return None


def _tree(pid: int) -> list[psutil.Process]:
    parent = psutil.Process(pid)
    found = [parent, *parent.children(recursive=True)]
    return [item for item in found if item.status() != psutil.STATUS_ZOMBIE]


def _wanted(process: psutil.Process, wanted: str) -> bool:
    kind = _kind(process)
    return kind == wanted or (wanted == OTHER and kind not in (PARENT, CHILD))


def _kind(process: psutil.Process) -> str:
    """The module a process runs: ``guard``, ``child``, torch's ``run``; the coordinator, or the name of a program."""
    words = process.cmdline()
    module = words[words.index("-m") + 1].rpartition(".")[2] if "-m" in words[:3] else process.name()
    return PARENT if module == "cli" else module


def phase(out: Path, former: Set[str]) -> str:
    """What a run is doing, from what lies in its folder beside the ``former`` launches.

    An engine's phase where one is open, ``before`` the first of them, ``between`` them or after the last.
    """
    launches = [path for path in out.glob("launches/*") if path.name not in former]
    working = [path for path in launches if not (path / "exit.json").is_file()]
    if not working:
        return "between" if launches else "before"
    newest = max(working, key=lambda path: path.name)
    for path in sorted(newest.glob("staging/phase-*")):
        try:
            return path.read_text() or "start"
        except OSError:
            continue
    return "start"


def seals(place: Place) -> dict[str, bytes]:
    """The content of every seal by its path."""
    return {path.relative_to(place.out).as_posix(): path.read_bytes() for path in place.out.glob("sides/*/*/COMPLETE")}


def _kept(sealed: dict[str, bytes], place: Place) -> None:
    now = seals(place)
    assert {name: now.get(name) for name in sealed} == sealed, "a sealed attempt was touched"
    for side, states in place.attempts().items():
        assert "sealed" not in states[:-1], f"a completed side run was executed again: {side} {states}"


def _same(place: Place, whole: Whole, last: Done) -> None:
    assert last.code in (0, 1), last
    wanted = [(case["id"], case["status"], case["metrics"]) for case in whole.document["cases"]]
    found = [(case["id"], case["status"], case["metrics"]) for case in last.document["cases"]]
    assert found == wanted
    assert len({case for case, _, _ in found}) == len(found)
    states = place.attempts()
    assert len(states) == whole.sides
    assert all(side.count("sealed") == 1 and side[-1] == "sealed" for side in states.values()), states
    result = result_group(place.out)
    assert result.keys() == whole.result.keys()
    other = [name for name, digest in whole.result.items() if result[name] != digest]
    assert other == [], f"the result group is not that of an undisturbed run: {other}"

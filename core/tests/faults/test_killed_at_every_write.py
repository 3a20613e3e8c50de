"""The coordinator is killed just before a change it makes to the folder: 8 of them here, 100 in the full tier."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from attrs import evolve

from .chaos import result_group, seals
from .place import MODULES, Place


def _crashing(place: Place, **variables: object) -> Place:
    extra = {
        "PYTHONPATH": os.pathsep.join([str(MODULES / "crash"), place.environment["PYTHONPATH"]]),
        "CRASH_FOLDER": str(place.out),
        **{name: str(value) for name, value in variables.items()},
    }
    return evolve(place, extra=extra)


def _place(root) -> Place:
    place = Place.make(root)
    place.write()
    return place


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The result group of an undisturbed run, and the number of changes that made it."""
    place = _place(tmp_path_factory.mktemp("undisturbed") / "place")
    done = _crashing(place, CRASH_COUNT=place.root / "changes").run("--jobs", 1)
    assert done.code == 0, done
    return result_group(place.out), int((place.root / "changes").read_text())


def _killed(place: Place, at: int, whole: dict[str, str]) -> str:
    """Kill before change ``at`` and run again; returns how the first run ended."""
    first = _crashing(place, CRASH_AT=at).run("--jobs", 1)
    assert first.code in (0, -signal.SIGKILL), first
    assert place.left() == []
    sealed = seals(place)
    again = place.run("--jobs", 1)
    assert again.code == 0, (at, again)
    now = seals(place)
    assert {name: now[name] for name in sealed} == sealed
    assert [states.count("sealed") for states in place.attempts().values()] == [1, 1], (at, place.attempts())
    assert result_group(place.out) == whole, at
    return "killed" if first.code else "ended before"


@pytest.mark.parametrize("points", [8, pytest.param(100, marks=[pytest.mark.full, pytest.mark.timeout(7200)])])
def test_a_kill_before_a_change_loses_nothing(points: int, undisturbed, tmp_path, capsys) -> None:
    whole, changes = undisturbed
    chosen = [1 + number * changes // points for number in range(points)]
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(lambda at: _killed(_place(tmp_path / str(at)), at, whole), chosen))
    with capsys.disabled():
        print(f"\n{ends.count('killed')} kills before a change, of {changes} changes of a run")
    assert ends.count("killed") >= 0.9 * len(ends)

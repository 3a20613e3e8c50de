"""Sealed attempts of other output folders, taken over into one that is bound to the same identity and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import define, evolve, field, frozen

from xcfg.errors import ArtifactError, InvalidInput
from xcfg.model.case import Case
from xcfg.model.plan import Plan
from xcfg.runner.artifacts import load_plan
from xcfg.runner.attempt_files import read_attempt, subject_of
from xcfg.runner.audit import Problem
from xcfg.runner.binding import bind, check, read_folder
from xcfg.runner.copies import copy_attempt, copy_sealed, same_attempt
from xcfg.runner.durable import encode, replace, sync_folder, write_new
from xcfg.runner.exits import NAME as EXIT
from xcfg.runner.frozen import SUBJECT, load_frozen
from xcfg.runner.plan_file import plan_text
from xcfg.runner.plans import merged
from xcfg.runner.seal import sealed
from xcfg.runner.store import Store

ORIGIN = "origin.json"


@define(kw_only=True)
class Taken:
    """``taken`` names the new attempts (``SIDE/attempt-NNNN``); ``present`` counts those that were here already.

    ``refused`` are attempts whose seal does not hold; ``cases`` is the number of cases that the plan gained.
    """

    taken: list[str] = field(factory=list)
    present: int = 0
    cases: int = 0
    refused: list[Problem] = field(factory=list)


@frozen(kw_only=True)
class _Source:
    """A folder to take from, found to belong here. ``name`` is how the user gave it."""

    store: Store
    name: str
    plan: Plan
    checkpoints: Mapping[str, Mapping[str, str]]


def take_over(out: Path, others: Mapping[str, Path]) -> Taken:
    """Take the sealed attempts, launches' ends and cases of ``others`` (by the name to report them under) into ``out``.

    The caller holds the lock of ``out``. Raises InvalidInput, before anything is written, where one of them is bound to
    another identity or token batch or its cases cannot stand in one plan with those here; ArtifactError where a
    folder's documents are damaged. A damaged attempt is left out and named. Killed at any moment, it leaves whole
    attempts only, and taking over again goes on from there.
    """
    store = Store(out)
    sources = [_source(store, name, path) for name, path in others.items()]
    plan = _united(load_plan(out), sources)
    result = Taken(cases=len(plan.cases) - len(load_plan(out).cases))
    for source in sources:
        if not store.tokens.exists() and source.store.tokens.exists():
            copy_sealed(source.store.tokens, store.tokens, SUBJECT)
        launches: dict[str, str] = {}
        for side, number, path in _attempts(source.store):
            _take(store, source, (side, number, path), launches, result)
    checkpoints = {path: item for source in reversed(sources) for path, item in source.checkpoints.items()}
    here = read_folder(store)
    bind(store, here.binding, {**checkpoints, **here.checkpoints})
    replace(store.plan, plan_text(plan))
    return result


def _source(store: Store, name: str, path: Path) -> _Source:
    other = Store(path)
    if not other.run.is_file():
        raise InvalidInput(f"{name} holds no run", where="OTHER", hint="give a folder that `xcfg run --out` wrote")
    if path.resolve() == store.root.resolve():
        raise InvalidInput(f"{name} is the folder to merge into", where="OTHER")
    folder, here = read_folder(other), read_folder(store)
    try:
        check(store, folder.binding)
    except InvalidInput as error:
        reason = error.faults[0].message.removeprefix("this folder belongs to another experiment: ")
        raise _refused(name, f"{store.root} belongs to another experiment: {reason}") from error
    ours, theirs = load_frozen(store.tokens), load_frozen(other.tokens)
    if ours is not None and theirs is not None and ours.digest() != theirs.digest():
        raise _refused(name, f"its token batch is {theirs.digest()[:12]}, that of {store.root} is {ours.digest()[:12]}")
    for checkpoint, content in folder.checkpoints.items():
        if here.checkpoints.get(checkpoint, content) != content:
            raise _refused(name, f"its checkpoint {checkpoint} has another content than that of {store.root}")
    return _Source(store=other, name=name, plan=load_plan(path), checkpoints=folder.checkpoints)


def _refused(name: str, reason: str) -> InvalidInput:
    return InvalidInput(f"{name} cannot be merged: {reason}", where="OTHER", hint="nothing was changed")


def _united(plan: Plan, sources: Sequence[_Source]) -> Plan:
    """The plan with the cases of the others behind its own; its dimensions keep their order and stand first."""
    for source in sources:
        try:
            union = merged(source.plan, plan)
        except InvalidInput as error:
            raise _refused(source.name, error.faults[0].message) from error
        names = (*plan.dimensions, *(name for name in union.dimensions if name not in plan.dimensions))
        plan = evolve(
            union,
            dimensions=names,
            cases=[_ordered(case, names) for case in union.cases],
            reference=union.reference and _ordered(union.reference, names),
        )
    return plan


def _ordered(case: Case, names: Sequence[str]) -> Case:
    return evolve(case, axes={name: case.axes[name] for name in names})


def _attempts(store: Store) -> Iterator[tuple[str, int, Path]]:
    for side in sorted(path.name for path in (store.root / "sides").glob("*") if path.is_dir()):
        for number, path in store.attempts(side):
            if sealed(path):
                yield side, number, path


def _take(store: Store, source: _Source, found: tuple[str, int, Path], launches: dict[str, str], result: Taken) -> None:
    side, number, path = found
    try:
        attempt = read_attempt(path, side, number)
    except ArtifactError as error:
        place = f"{source.name}/{source.store.relative(path)}"
        result.refused.append(Problem(path=place, message=error.faults[0].message))
        return
    if any(same_attempt(path, folder, subject_of(side, here)) for here, folder in store.attempts(side)):
        result.present += 1
        return
    launch = attempt.surroundings.launch
    if launch and launch not in launches:
        launches[launch] = _take_launch(store, source, launch)
    around = evolve(attempt.surroundings, launch=launches.get(launch, ""))
    number = max((item for item, _ in store.attempts(side)), default=0) + 1
    copy_attempt(path, store.side(side) / f"attempt-{number:04d}", subject_of(side, number), around)
    result.taken.append(subject_of(side, number))


def _take_launch(store: Store, source: _Source, launch: str) -> str:
    """Keep how the launch of an attempt ended, under a name that is free here, and where it comes from."""
    folder = store.new_launch()
    ended = source.store.launch(launch) / EXIT
    if ended.is_file():
        write_new(folder / EXIT, ended.read_bytes())
    write_new(folder / ORIGIN, encode({"schema": "xcfg.origin/1", "folder": source.name, "launch": launch}))
    sync_folder(folder)
    return folder.name

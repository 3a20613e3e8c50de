"""Whether everything that an output folder claims still holds."""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from xcfg.cli.commit import CUBE, cube_attributes
from xcfg.cli.judge import contract_of
from xcfg.cli.stored import check_folder, load_judged
from xcfg.cube.reader import open_cube
from xcfg.cube.sameness import check_measured, differences
from xcfg.cube.staging import locate
from xcfg.cube.writer import rebuild
from xcfg.errors import XcfgError
from xcfg.model.json import Json
from xcfg.runner.artifacts import load_plan
from xcfg.runner.audit import Audit, Problem, audit
from xcfg.runner.binding import read_folder
from xcfg.runner.lock import locked
from xcfg.runner.store import Store

if TYPE_CHECKING:
    from xcfg.plugin.registry import Registry


@frozen(kw_only=True)
class Verified:
    """``cube`` is ``same``, ``differs``, ``missing`` or ``not_compared``; ``cases`` those that were judged again."""

    audit: Audit
    problems: tuple[Problem, ...]
    cube: str
    cases: int = 0

    def counts(self) -> dict[str, Json]:
        """How much was looked at, and how much of it does not hold."""
        found = self.audit
        return {
            "attempts": found.attempts,
            "payloads": found.payloads,
            "failures": found.failures,
            "unfinished": found.unfinished,
            "cases": self.cases,
            "problems": len(self.problems),
        }


def verify_folder(folder: Path, registry: Registry) -> Verified:
    """Hash every payload again and compare the cube with one rebuilt from the attempts; the folder is not changed.

    Raises InvalidInput where the folder holds no run, or where another process is writing in it.
    """
    check_folder(folder)
    with _held(folder):
        found = audit(folder)
        problems = list(found.problems)
        if not found.bound:
            return Verified(audit=found, problems=tuple(problems), cube="not_compared")
        try:
            state, cases = _compare(folder, registry, problems)
        except XcfgError as error:
            problems.extend(
                Problem(path=CUBE, message=f"it cannot be compared with a rebuild: {fault}") for fault in error.faults
            )
            state, cases = "not_compared", 0
        return Verified(audit=found, problems=tuple(problems), cube=state, cases=cases)


def _held(folder: Path) -> AbstractContextManager[None]:
    """The folder's lock, where a lock can be taken at all: an archive may be read-only, and then nobody writes."""
    return locked(folder) if os.access(folder, os.W_OK) else nullcontext()


def _compare(folder: Path, registry: Registry, problems: list[Problem]) -> tuple[str, int]:
    path = locate(folder / CUBE)
    if not path.exists():
        problems.append(Problem(path=CUBE, message="there is no result cube; make it: xcfg cube rebuild"))
        return "missing", 0
    bound, here = read_folder(Store(folder)).binding.contract, contract_of(load_plan(folder), registry).ref
    if bound != here:
        told = f"the folder was judged by {bound.id} {bound.version} ({bound.digest[:12]}), installed is {here.version}"
        problems.append(Problem(path="run.json", message=f"{told} ({here.digest[:12]}); the cube was not compared"))
        return "not_compared", 0
    plan, run, outcomes = load_judged(folder, registry)
    attributes = cube_attributes(plan, run, registry)
    try:
        # what was installed when it was written does not follow from the attempts: taken as it is told
        attributes["plugins"] = open_cube(path).attributes.get("plugins", {})
        check_measured(path)
    except XcfgError as error:
        problems.extend(Problem(path=CUBE, message=str(fault)) for fault in error.faults)
    with tempfile.TemporaryDirectory(prefix="xcfg-verify-") as place:
        rebuild(Path(place) / CUBE, plan, outcomes, attributes, like=path)
        found = differences(path, Path(place) / CUBE)
    problems.extend(Problem(path=f"{CUBE}/{name}", message=message) for name, message in found.items())
    return ("differs" if found else "same"), len(outcomes)

"""An experiment file with overrides, checked: every fault at once, each with its place."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from xcfg.errors import InvalidInput, PluginError
from xcfg.model import codec
from xcfg.model.experiment import Experiment
from xcfg.model.json import Json
from xcfg.planner.catalog import Catalog
from xcfg.planner.check_applied import check_applied
from xcfg.planner.check_axes import check_axes
from xcfg.planner.check_constraints import check_constraints
from xcfg.planner.check_derived import check_derived
from xcfg.planner.check_files import check_files
from xcfg.planner.check_knobs import check_knobs
from xcfg.planner.check_names import check_names
from xcfg.planner.check_plugins import check_plugins
from xcfg.planner.check_values import check_values
from xcfg.planner.document import Document, value_problems
from xcfg.planner.locate import Locator
from xcfg.planner.normalise import normalise
from xcfg.planner.overrides import Override, apply_override, parse_override
from xcfg.planner.problem import Problem, from_shape
from xcfg.planner.read import read_document
from xcfg.planner.refused import explained


@frozen(kw_only=True)
class Loaded:
    """``root`` is the absolute folder of the experiment file, where its relative paths start."""

    experiment: Experiment
    root: Path


def load_experiment(path: Path, overrides: Sequence[str] = (), *, registry: Catalog) -> Loaded:
    """Read ``path``, apply dotted ``overrides`` (``baseline.rollout.dtype=fp32``) and check everything.

    Knob values come out in their normal form. Raises InvalidInput with all faults, each as
    ``file:line:column dotted.path`` or ``override dotted.path``; PluginError where nothing but plugins is at fault.
    """
    path = Path(path)
    document = read_document(path)
    if not isinstance(document.data, dict):
        raise InvalidInput("expected a mapping at the top, with schema, name, checkpoint ...", where=str(path))
    root = path.parent.resolve()
    return Loaded(experiment=_experiment(document, document.data, overrides, registry, root), root=root)


def _experiment(
    document: Document, written: dict[str, Json], overrides: Sequence[str], catalog: Catalog, root: Path
) -> Experiment:
    first = normalise(copy.deepcopy(written))
    applied, refused = _apply(first.data, overrides, catalog)
    second = normalise(first.data)
    locator = Locator(
        document=document,
        moved={**first.moved, **second.moved},
        overridden=tuple(override.path for override in applied),
    )
    data = second.data
    problems = [*document.problems, *value_problems(data), *first.problems, *second.problems]
    shaped, more = _meaning(data, catalog, root)
    unreadable = {problem.path for problem in problems if not problem.at_key}
    problems += [problem for problem in more if problem.path not in unreadable]
    if problems or refused or shaped is None:
        raise _error(locator, problems, refused)
    return shaped


def _meaning(data: dict[str, Json], catalog: Catalog, root: Path) -> tuple[Experiment | None, list[Problem]]:
    """The experiment in ``data`` with its knob values normalised, and everything that is wrong with it."""
    problems = [*check_knobs(data, catalog), *check_values(data), *check_names(data, catalog)]
    problems += [*check_axes(data, catalog), *check_constraints(data), *check_derived(data)]
    problems += [*check_plugins(data, catalog, root), *check_applied(data, catalog), *check_files(data, root)]
    shaped, more = _shape(data)
    return shaped, [*problems, *more]


def _apply(
    data: dict[str, Json], overrides: Sequence[str], catalog: Catalog
) -> tuple[list[Override], list[InvalidInput]]:
    applied: list[Override] = []
    refused: list[InvalidInput] = []
    for text in overrides:
        try:
            override = parse_override(text, data, catalog.knobs())
            apply_override(data, override)
            applied.append(override)
        except InvalidInput as error:
            refused.append(error)
    return applied, refused


def _shape(data: dict[str, Any]) -> tuple[Experiment | None, list[Problem]]:
    try:
        return codec.structure(data, Experiment), []
    except codec.StructureError as error:
        found = [explained(from_shape(fault)) for fault in error.path_faults]
        # A contract given as figures is explained by the check of plugins.
        return None, [item for item in found if item.path[:1] != ("contract",)]


def _error(locator: Locator, problems: list[Problem], refused: list[InvalidInput]) -> InvalidInput | PluginError:
    faults = [*locator.faults(problems), *(fault for error in refused for fault in error.faults)]
    if problems and not refused and all(issubclass(problem.kind, PluginError) for problem in problems):
        return PluginError(faults=faults)
    return InvalidInput(faults=faults)

"""Ids that plugins bring: scorers, kernel backends, the tolerance contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from xcfg.errors import XcfgError
from xcfg.model import codec
from xcfg.model.json import Json
from xcfg.model.kernel import LOGP_BACKEND, SELECTED_LOGPROB
from xcfg.planner.catalog import Catalog
from xcfg.planner.problem import Problem, from_error
from xcfg.planner.refused import CONTRACT_HINT, CONTRACT_REASON

_ROLES = ("rollout", "training")


def check_plugins(data: dict[str, Json], catalog: Catalog, root: Path) -> list[Problem]:
    """Ids nobody brings, and operators that contradict ``logp.backend``."""
    check = _Check(catalog=catalog)
    found = [problem for path, scorer in _scorers(data) for problem in check.scorer(path, scorer)]
    found += [item for path, operator, backend in _backends(data) for item in check.backend(path, operator, backend)]
    return [*found, *_agreement(data), *_contract(data.get("contract"), catalog, root)]


@frozen(kw_only=True)
class _Check:
    catalog: Catalog

    def scorer(self, path: codec.Path, scorer_id: str) -> list[Problem]:
        try:
            self.catalog.scorer(scorer_id)
        except XcfgError as error:
            return from_error(error, path)
        return []

    def backend(self, path: codec.Path, operator: str, backend: str) -> list[Problem]:
        try:
            self.catalog.backend(operator, backend)
        except XcfgError as error:
            return from_error(error, path)
        return []


def _contract(cited: Json, catalog: Catalog, root: Path) -> list[Problem]:
    if isinstance(cited, dict | list | int | float):
        return [Problem(path=("contract",), message=CONTRACT_REASON, hint=CONTRACT_HINT)]
    if not isinstance(cited, str):
        return []
    try:
        catalog.contract(cited, root=root)
    except XcfgError as error:
        return from_error(error, ("contract",))
    return []


def _scorers(data: dict[str, Json]) -> Iterator[tuple[codec.Path, str]]:
    cases = data.get("cases")
    holders: list[tuple[codec.Path, Json]] = [((), data)]
    holders += [(("cases", index), case) for index, case in enumerate(cases if isinstance(cases, list) else [])]
    for path, holder in holders:
        for role in _ROLES:
            side = holder.get(role) if isinstance(holder, dict) else None
            scorer = side.get("scorer") if isinstance(side, dict) else None
            if isinstance(scorer, str) and (scorer or not path):
                yield (*path, role, "scorer"), scorer


def _backends(data: dict[str, Json]) -> Iterator[tuple[codec.Path, str, str]]:
    """Place, operator and id of every backend named."""
    for path, value in _logp_backends(data):
        yield path, SELECTED_LOGPROB, value
    for operator, role, choice in _choices(data):
        yield ("operators", operator, role, "backend"), operator, choice


def _choices(data: dict[str, Json]) -> Iterator[tuple[str, str, str]]:
    operators = data.get("operators")
    for operator, sides in operators.items() if isinstance(operators, dict) else ():
        for role in _ROLES:
            choice = sides.get(role) if isinstance(sides, dict) else None
            backend = choice.get("backend") if isinstance(choice, dict) else None
            if isinstance(backend, str):
                yield operator, role, backend


def _logp_backends(data: dict[str, Json]) -> Iterator[tuple[codec.Path, str]]:
    found = [(path, values[LOGP_BACKEND]) for path, values in assignments(data) if LOGP_BACKEND in values]
    for path, value in found:
        if isinstance(value, str):
            yield (*path, LOGP_BACKEND), value
        for index, item in enumerate(_list(value)):
            if isinstance(item, str):
                yield (*path, LOGP_BACKEND, index), item


def assignments(data: dict[str, Json]) -> Iterator[tuple[codec.Path, dict[str, Json]]]:
    """Every mapping from knobs to a value or to a list of them."""
    places: list[tuple[codec.Path, Json]] = [((part,), data.get(part)) for part in ("baseline", "fixed", "axes")]
    for part in ("linked", "aligned"):
        tables = data.get(part)
        places += [((part, name), table) for name, table in (tables.items() if isinstance(tables, dict) else ())]
    for index, case in enumerate(_list(data.get("cases"))):
        places.append((("cases", index, "set"), case.get("set") if isinstance(case, dict) else None))
    yield from ((path, values) for path, values in places if isinstance(values, dict))


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _agreement(data: dict[str, Json]) -> Iterator[Problem]:
    """Two ways to name the backend of one operator must not contradict each other."""
    chosen = [(role, backend) for operator, role, backend in _choices(data) if operator == SELECTED_LOGPROB]
    if not chosen:
        return
    for path, value in _logp_backends(data):
        if path[0] == "aligned":  # a profile leaves it out and says why
            continue
        if path[0] != "baseline":
            message = f"{LOGP_BACKEND} is varied, so operators.{SELECTED_LOGPROB} cannot fix it; keep one of the two"
            yield Problem(path=path[:-1] if isinstance(path[-1], int) else path, message=message, at_key=True)
            continue
        for role, backend in chosen:
            if backend != value:
                message = f"{backend!r} disagrees with baseline {LOGP_BACKEND}, which is {value!r}"
                yield Problem(path=("operators", SELECTED_LOGPROB, role), message=message)

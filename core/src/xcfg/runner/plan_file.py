"""``plan.json``: every case ever planned in a folder. Cases share sides, so each side is turned into JSON or back once.

Ten thousand cases of two hundred side configurations would otherwise cost as much as twenty thousand configurations.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from xcfg.errors import InvalidInput
from xcfg.model.case import Case, SideConfig
from xcfg.model.codec import structure, unstructure
from xcfg.model.json import Json
from xcfg.model.plan import SCHEMA, Plan
from xcfg.runner.durable import replace_changed
from xcfg.runner.plans import merged
from xcfg.runner.stored import read_document

_ROLES = ("rollout", "training")
_PLAN, _CASE = ([field.name for field in attrs.fields(kind)] for kind in (Plan, Case))
_BESIDE = (_CASE[: _CASE.index("rollout")], _CASE[_CASE.index("training") + 1 :])
_ENCODE = json.JSONEncoder(allow_nan=False, ensure_ascii=False, default=unstructure).encode


def read_plan(path: Path) -> Plan:
    """The plan in ``path``; cases of one side configuration hold the same object. Raises ArtifactError."""
    return read_document(path, Plan, SCHEMA, _with_shared_sides)


def keep_plan(path: Path, plan: Plan) -> None:
    """Add the cases of ``plan`` to those in ``path``; a file that says the same already is not touched.

    The caller holds the folder's lock. Raises ArtifactError where the file is broken, InvalidInput as
    :func:`xcfg.runner.plans.merged`.
    """
    data = plan_text(plan)
    if path.is_file() and path.read_bytes() != data:
        data = plan_text(merged(read_plan(path), plan))
    replace_changed(path, data)


def plan_text(plan: Plan) -> bytes:
    """What :func:`xcfg.runner.durable.encode` gives for the plan."""
    known: dict[int, str] = {}

    def side(config: SideConfig) -> str:
        if id(config) not in known:
            known[id(config)] = _ENCODE(config)
        return known[id(config)]

    def case(item: Case) -> str:
        before, after = ({name: getattr(item, name) for name in names} for names in _BESIDE)
        sides = f'"rollout": {side(item.rollout)}, "training": {side(item.training)}'
        return f"{_ENCODE(before)[:-1]}, {sides}, {_ENCODE(after)[1:]}"

    parts = {name: _ENCODE(getattr(plan, name)) for name in _PLAN if name != "cases"}
    parts["cases"] = f"[{', '.join(map(case, plan.cases))}]"
    return ("{" + ", ".join(f'"{name}": {parts[name]}' for name in _PLAN) + "}\n").encode()


def _with_shared_sides(document: Json) -> Json:
    """Structured sides in the place of their JSON. A faulty one stays as it is: structuring the plan says where."""
    known: dict[str, SideConfig] = {}
    cases = document.get("cases") if isinstance(document, dict) else None
    for case in cases if isinstance(cases, list) else ():
        for role in _ROLES if isinstance(case, dict) else ():
            text = json.dumps(case.get(role))
            if text not in known:
                try:
                    known[text] = structure(case.get(role), SideConfig)
                except InvalidInput:
                    return document
            case[role] = known[text]
    return document

"""``plan.json``: every case ever planned in a folder. Cases share sides, so each side is turned into JSON or back once.

Ten thousand cases of two hundred side configurations would otherwise cost as much as twenty thousand configurations.
"""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path

import attrs

from xcfg.errors import InvalidInput
from xcfg.model.case import Case, SideConfig
from xcfg.model.codec import structure, unstructure
from xcfg.model.json import Json
from xcfg.model.plan import SCHEMA, Plan
from xcfg.runner.durable import replace
from xcfg.runner.plans import merged
from xcfg.runner.stored import read_document

_ROLES = ("rollout", "training")
_CASE = [field.name for field in attrs.fields(Case)]
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
    stored = path.read_bytes() if path.is_file() else None
    if stored not in (None, data):
        data = plan_text(merged(read_plan(path), plan))
    if stored != data:
        replace(path, data)


def plan_text(plan: Plan) -> bytes:
    """What :func:`xcfg.runner.durable.encode` gives for the plan."""
    mark = secrets.token_hex(16)  # no text of a plan holds it
    texts: dict[str, str] = {}

    def stand_in(config: SideConfig) -> str:
        """A name for a side, whose text takes its place once all cases are encoded."""
        name = f"{mark}{id(config)}"
        if name not in texts:
            texts[name] = _ENCODE(config)
        return name

    def row(case: Case) -> dict[str, Json]:
        sides = {"rollout": stand_in(case.rollout), "training": stand_in(case.training)}
        return {**{name: getattr(case, name) for name in _CASE}, "axes": dict(case.axes), **sides}

    cases = [row(case) for case in plan.cases]
    document = {**unstructure(attrs.evolve(plan, cases=())), "cases": cases}
    text = re.sub(f'"({mark}[0-9]+)"', lambda found: texts[found[1]], _ENCODE(document))
    return f"{text}\n".encode()


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

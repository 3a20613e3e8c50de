"""``xcfg plan`` and ``xcfg validate``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcfg.cli.experiment import Selection, planned, selection_options
from xcfg.cli.output import document, emit, json_option, table
from xcfg.cli.session import Session
from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.model.json import Json

if TYPE_CHECKING:
    from rich.console import Console

    from xcfg.model.case import Case
    from xcfg.model.plan import Plan
    from xcfg.plugin.registry import Registry


@click.command()
@selection_options
@click.option("--explain", "explained", default="", metavar="CASE", help="Show one case in full.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Also write the plan to this file.")
@click.option("--allow-fake", is_flag=True, help="Accept fake scorers; every output is marked.")
@click.option("--strict", is_flag=True, help="An unsupported case is an error.")
@json_option
@click.pass_obj
def plan(
    session: Session,
    /,
    explained: str,
    output: Path | None,
    allow_fake: bool,
    strict: bool,
    as_json: bool,
    **selected: Any,
) -> None:
    """Expand and validate EXPERIMENT without importing an engine.

    KEY=VALUE overrides a field of the file by its dotted path, for example axes.rollout.dtype=[bfloat16,float32].
    """
    registry = session.registry(allow_fake=allow_fake)
    selection = Selection(**selected)
    made = planned(selection, registry)
    if output is not None:
        _write(output, made)
    if strict:
        refuse_unsupported(made)
    content = document("plan", **summary(made, registry), unaligned=_unaligned(made, selection, registry))
    if explained:
        case = find_case(made, explained)
        emit(session, as_json, {**content, "case": _full(case)}, lambda out: _explain(out, case))
        return
    emit(session, as_json, content, lambda out: print_plan(out, content))


@click.command()
@selection_options
@click.option("--allow-fake", is_flag=True, help="Accept fake scorers.")
@json_option
@click.pass_obj
def validate(session: Session, /, allow_fake: bool, as_json: bool, **selected: Any) -> None:
    """Check EXPERIMENT as ``plan`` does; print nothing when it is sound."""
    registry = session.registry(allow_fake=allow_fake)
    made = planned(Selection(**selected), registry)
    emit(session, as_json, document("plan", **summary(made, registry)), lambda out: None)


def refuse_unsupported(plan: Plan) -> None:
    """Raise UnsupportedError where an engine cannot run a case of the plan."""
    if refused := [case for case in plan.cases if case.rejected and case.rejected.kind == "unsupported"]:
        first = refused[0]
        raise UnsupportedError(
            f"{len(refused)} cases are unsupported, the first: {first.rejected.reason if first.rejected else ''}",
            where=f"case {first.id}",
            hint="leave --strict out to plan the others",
        )


def find_case(plan: Plan, name: str) -> Case:
    """The case of this id, id prefix or name. Raises InvalidInput."""
    found = [case for case in plan.cases if name in (case.id, case.name)]
    found = found or [case for case in plan.cases if case.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    problem = "is ambiguous" if found else "is not in the plan"
    raise InvalidInput(f"case {name!r} {problem}", where="CASE", hint="`xcfg plan` lists ids and names")


def summary(plan: Plan, registry: Registry) -> dict[str, Json]:
    """The fields of the JSON document. A rejected case gives its reason, and whose rejection it is as ``kind``."""
    from xcfg.model.codec import unstructure
    from xcfg.runner.specify import is_fake

    rejected = sum(case.rejected is not None for case in plan.cases)
    return {
        "name": plan.experiment.name,
        "fake": any(is_fake(side, registry) for case in plan.cases for side in (case.rollout, case.training)),
        "limited": plan.limit,
        "dimensions": list(plan.dimensions),
        "baseline": plan.baseline,
        "counts": {"planned": len(plan.cases) - rejected, "rejected": rejected},
        "cases": [
            {
                "id": case.id,
                "name": case.name,
                "axes": unstructure(case.axes),
                "changed": list(case.changed),
                "rejected": None if case.rejected is None else case.rejected.reason,
                "kind": None if case.rejected is None else case.rejected.kind,
            }
            for case in plan.cases
        ],
    }


def _unaligned(plan: Plan, selection: Selection, registry: Registry) -> dict[str, str]:
    """What the profiles could not align, knob to reason; empty without profiles."""
    from xcfg.planner.build import unaligned

    if not selection.profiles:
        return {}
    return dict(unaligned(plan.experiment, root=Path(plan.root), registry=registry, profiles=selection.profiles))


def _full(case: Case) -> Json:
    from xcfg.model.codec import unstructure

    return unstructure(case)


def print_plan(out: Console, content: Mapping[str, Json]) -> None:
    """Print a ``plan`` document."""
    from xcfg.report.wording import FAKE_NOTE, limit_note

    rows = [
        [case["id"], case["name"], ", ".join(f"{knob}={_shown(case['axes'].get(knob))}" for knob in case["changed"]),
         "" if case["rejected"] is None else f"{case['kind']}: {case['rejected']}"]
        for case in content["cases"]
    ]  # fmt: skip
    table(out, ["case", "name", "changed from the baseline", "rejected"], rows)
    counts = content["counts"]
    out.print(f"{counts['planned']} cases planned, {counts['rejected']} rejected")
    for knob, reason in content.get("unaligned", {}).items():
        out.print(f"{knob} keeps its production value: {reason}", markup=False)
    if content["fake"]:
        out.print(FAKE_NOTE)
    if limited := limit_note(content):
        out.print(limited)


def _explain(out: Console, case: Case) -> None:
    for side in (case.rollout, case.training):
        out.print(f"{side.role.value}: scorer {side.scorer}, checkpoint {side.checkpoint.path}", markup=False)
        rows = [[name, _shown(value)] for name, value in sorted(side.knobs.items())]
        rows += [[name, f"no meaning here: {why}"] for name, why in sorted(side.inapplicable.items())]
        rows += [[f"operator {name}", choice.backend] for name, choice in sorted(side.operators.items())]
        table(out, ["knob", "requested"], rows)
    if case.rejected:
        out.print(f"rejected ({case.rejected.kind}): {case.rejected.reason}", markup=False)


def _shown(value: Json) -> str:
    return "engine's choice" if value is None else str(value)


def _write(path: Path, plan: Plan) -> None:
    from xcfg.runner.durable import write_json

    if not path.parent.is_dir():
        raise InvalidInput(f"no folder {path.parent}", where="--output", hint="make it first")
    write_json(path, plan)

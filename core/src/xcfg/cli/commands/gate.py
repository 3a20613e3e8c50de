"""``xcfg gate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcfg.cli.output import emit, json_option
from xcfg.cli.placing import Placing, placing_options
from xcfg.cli.session import Session
from xcfg.cli.written import check_written, write, written_options

if TYPE_CHECKING:
    from xcfg.cli.executing import Executed
    from xcfg.cli.gate.checks import Check
    from xcfg.cli.gate.file import Gate
    from xcfg.model.tolerance import ToleranceContract

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("experiment", type=_PATH)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--gate", "file", type=_PATH, required=True, metavar="FILE", help="What `xcfg search --gate` wrote.")
@click.option(
    "--skip-unrelated", is_flag=True, help="Leave out the cases of knobs that changed nothing: fewer engines."
)
@click.option("--out", type=_PATH, help="Output folder (default: runs/NAME-gate).")
@click.option("--resume/--no-resume", default=True, help="Reuse sealed side runs (default) or execute all again.")
@click.option("--jobs", type=click.IntRange(min=1), help="Engines at once (default: what memory and cores allow).")
@click.option("--retry", type=click.IntRange(min=0), default=0, show_default=True, help="Retries of failed launches.")
@placing_options
@click.option("--allow-fake", is_flag=True, help="Accept fake scorers; every output is marked.")
@written_options
@json_option
@click.pass_context
def gate(
    ctx: click.Context,
    /,
    experiment: Path,
    overrides: tuple[str, ...],
    file: Path,
    skip_unrelated: bool,
    out: Path | None,
    allow_fake: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the cases that a gate file pins and say whether they still give what they have to.

    Passes while the pinned alignment and the aligned reference are within the contract, production and every part of
    the alignment are not, and knobs that changed nothing still change nothing.
    """
    from xcfg.cli.gate.cases import identity_fault, pinned_cases
    from xcfg.cli.gate.document import gate_document, refused_document
    from xcfg.cli.gate.file import read_gate
    from xcfg.cli.interpreters import check_interpreters
    from xcfg.planner.alignment_space import AlignmentSpace
    from xcfg.planner.load import load_experiment
    from xcfg.report.gate import print_gate
    from xcfg.runner.options import RunOptions
    from xcfg.runner.schedule import side_configs

    session: Session = ctx.obj
    check_written(options)
    pinned = read_gate(file)
    if skip_unrelated:
        pinned = pinned.without_unrelated()
    placing = Placing.taken(options)
    registry = session.registry(allow_fake=allow_fake, interpreters=placing.interpreters)
    loaded = load_experiment(experiment, overrides, registry=registry)
    folder = out if out is not None else Path("runs") / f"{loaded.experiment.name}-gate"
    space = AlignmentSpace.of(loaded.experiment, loaded.root, registry)
    plan = space.plan(list(pinned_cases(pinned, space, file).values()))
    check_interpreters(side_configs(plan), registry)
    if fault := identity_fault(pinned, plan, registry, folder):
        content, code = refused_document(pinned, file, folder, fault)
    else:
        running = RunOptions(
            resume=options["resume"],
            timeout=placing.timeout,
            start_timeout=placing.start_timeout,
            stop_timeout=placing.stop_timeout,
            retry=options["retry"],
            jobs=options["jobs"],
        )
        from xcfg.cli.executing import Executing
        from xcfg.cli.progress import progress

        with placing.opened(registry) as executor, progress(session, folder) as told:
            executing = Executing(registry=registry, folder=folder, options=running, told=told, executor=executor)
            done = executing.whole(plan)
        from xcfg.cli.commit import commit_run  # what comes after the engines is imported after them
        from xcfg.cli.judge import contract_of

        commit_run(folder, done.report, done.outcomes, registry)
        content, code = gate_document(pinned, file, folder, _checks(pinned, done, contract_of(plan, registry)), done)
    write(options, content)
    emit(session, as_json, content, lambda screen: print_gate(screen, content))
    ctx.exit(code)


def _checks(pinned: Gate, done: Executed, contract: ToleranceContract) -> list[Check]:
    from xcfg.cli.gate.checks import Check, expected
    from xcfg.cli.search.outcome import outcome_of

    found = {outcome.case.id: outcome_of(outcome, contract) for outcome in done.outcomes}
    return [Check(case=case, expected=expected(case), outcome=found[case.id]) for case in pinned.cases]

"""``xcfg search``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcfg.cli.output import emit, json_option
from xcfg.cli.placing import Placing, placing_options
from xcfg.cli.session import Session

if TYPE_CHECKING:
    from xcfg.analyzer.search.session import Trial
    from xcfg.cli.search.executor import Executed

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("experiment", type=_PATH)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", type=_PATH, help="Output folder (default: runs/NAME). What it holds is used, not run again.")
@click.option("--budget", type=click.IntRange(min=0), help="Engine constructions at most; then the best answer so far.")
@click.option(
    "--prove",
    type=click.Choice(["irreducible", "minimum"]),
    default="irreducible",
    show_default=True,
    help="Stop once no part of the answer passes, or once no smaller set does.",
)
@click.option("--assume-monotone", is_flag=True, help="Assume that aligning less never mends what aligning more fails.")
@click.option("--gate", type=_PATH, metavar="FILE", help="Write what a gate pins: the set, what stays, the cases.")
@click.option("--jobs", type=click.IntRange(min=1), help="Engines at once (default: what memory and cores allow).")
@click.option("--retry", type=click.IntRange(min=0), default=0, show_default=True, help="Retries of failed launches.")
@placing_options
@click.option("--allow-fake", is_flag=True, help="Accept fake scorers; every output is marked.")
@json_option
@click.pass_context
def search(
    ctx: click.Context,
    /,
    experiment: Path,
    overrides: tuple[str, ...],
    out: Path | None,
    gate: Path | None,
    allow_fake: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find and verify the smallest set of knobs that, aligned, brings production within its contract.

    Starts from the production point of EXPERIMENT and executes only the cases that the answer needs. A search that was
    cut off goes on where it was.
    """  # fmt: skip
    from xcfg.analyzer.search.problem import Options, Word
    from xcfg.cli.interpreters import check_interpreters
    from xcfg.cli.progress import progress
    from xcfg.cli.search.document import answer_document, ending
    from xcfg.cli.search.evidence import check_gate, unpinnable, write_gate
    from xcfg.cli.search.findings import findings
    from xcfg.cli.search.looking import keep, look
    from xcfg.cli.search.setting import Setting
    from xcfg.planner.load import load_experiment
    from xcfg.report.search import print_search
    from xcfg.runner.options import RunOptions

    session: Session = ctx.obj
    if gate is not None:
        check_gate(gate)
    placing = Placing.taken(options)
    registry = session.registry(allow_fake=allow_fake, interpreters=placing.interpreters)
    loaded = load_experiment(experiment, overrides, registry=registry)
    folder = out if out is not None else Path("runs") / loaded.experiment.name
    setting = Setting.of(loaded.experiment, loaded.root, folder, registry)
    production = setting.space.production
    check_interpreters((production.rollout, production.training), registry)
    how = Options(
        prove=Word(options["prove"]),
        monotone=options["assume_monotone"],
        budget=options["budget"],
        keeps_engines=False,
    )
    running = RunOptions(
        timeout=placing.timeout,
        start_timeout=placing.start_timeout,
        stop_timeout=placing.stop_timeout,
        retry=options["retry"],
        jobs=options["jobs"],
    )
    with (
        placing.opened(registry) as place,
        progress(session, folder) as on_event,
        setting.executor(running, on_event, place) as executor,
    ):
        looked = look(setting.problem, how, setting.known, executor, _teller(session))
        keep(folder, executor, registry)
    content = answer_document(
        "search",
        folder,
        looked.claim,
        executor,
        findings(setting.space, executor.judged, setting.contract, ablation=False),
        engines={"constructed": executor.constructed},
        engine_s=executor.engine_s,
    )
    if gate is not None and (why := unpinnable(looked.claim, executor)):
        click.echo(f"xcfg: {gate} was not written: {why}", err=True)
    elif gate is not None:
        write_gate(gate, looked.claim, executor)
    emit(session, as_json, content, lambda screen: print_search(screen, content))
    ctx.exit(ending(looked.claim)[1])


def _teller(session: Session) -> Any:
    """One line on standard error for each trial that took an engine."""

    def tell(trial: Trial, done: Executed) -> None:
        if session.quiet or trial.free:
            return
        aligned = ", ".join(sorted(trial.aligned)) or "nothing"
        outcome = done.outcome
        number = "" if outcome.max_abs_dlogp is None else f", max |d| {outcome.max_abs_dlogp:.3g}"
        within = {True: "within the production row", False: "outside it", None: outcome.status.value}[outcome.within]
        click.echo(f"xcfg: {trial.purpose.value}: aligned {aligned}: {within}{number}", err=True)

    return tell

"""Executes a plan: each distinct engine once, what is sealed on disk not again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from xcfg.errors import InvalidInput
from xcfg.model.plan import Plan
from xcfg.model.scorer import Role
from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.plugin.executor import Executor
from xcfg.runner.belongs import binding_of, checkpoints_of
from xcfg.runner.binding import LastRun, bind, check, finish
from xcfg.runner.checkpoints import remember, resolve
from xcfg.runner.context import Context
from xcfg.runner.events import Event
from xcfg.runner.execution import Execution
from xcfg.runner.frozen import load_frozen
from xcfg.runner.interrupt import like_ctrl_c
from xcfg.runner.jobs import default_jobs, folder_bytes
from xcfg.runner.local import LocalExecutor
from xcfg.runner.lock import locked
from xcfg.runner.lookup import Lookup
from xcfg.runner.options import RunOptions
from xcfg.runner.plan_file import keep_plan
from xcfg.runner.report import RunReport
from xcfg.runner.schedule import Group, alone, baseline_configs, group, side_configs, with_sampler
from xcfg.runner.sources import Source, freeze_recorded
from xcfg.runner.specify import world_size
from xcfg.runner.store import Store
from xcfg.runner.tally import Tally, Teller


def execute(
    plan: Plan,
    registry: Lookup,
    out: Path,
    options: RunOptions,
    on_event: Callable[[Event], None] = lambda event: None,
    executor: Executor | None = None,
    former: RunReport | None = None,
) -> RunReport:
    """Run the plan's side runs into the folder ``out`` and report all of them; on this machine without ``executor``.

    A failing side run is part of the report. ``former`` is the report of a moment ago on some of the cases: where none
    shares an engine, those are not executed again. Raises InvalidInput (wrong tokens or checkpoint, a folder of another
    experiment or in use) before anything is touched, PluginError, ArtifactError (the folder is damaged),
    EnvironmentFault (no room for the folder's own files), and KeyboardInterrupt once the children are gone.
    """
    started = time.monotonic()
    store = Store(out.absolute())
    wanted = (*side_configs(plan), *baseline_configs(plan))
    sampler = plan.case(plan.baseline).rollout
    done = {} if former is None else former.alone
    groups = engine_groups(plan, registry, options)
    before = frozenset(item.key for item in groups if item.case in done)
    groups = tuple(item for item in groups if item.case not in done)
    for item in groups:
        world_size(item.engine, registry.scorer(item.engine.scorer))
    checkpoints = checkpoints_of(plan, (*wanted, sampler), store)
    binding = binding_of(plan, registry, checkpoints)
    check(store, binding)
    known = load_frozen(store.tokens)
    source = Source.of(plan) if known is None else Source()
    if source.sample is not None:
        _refuse_unsampled(options, store)
    with like_ctrl_c(), locked(store.root):
        check(store, binding)
        bind(store, binding, _plain(checkpoints))
        keep_plan(store.plan, plan)
        remember(plan.root, checkpoints, store.checkpoints)
        tokens = known or load_frozen(store.tokens) or freeze_recorded(store, source.recorded, plan)
        if tokens is None and source.sample is not None:
            groups = with_sampler(groups, sampler, source.sample, registry)
        teller = Teller(on_event, Tally.of(plan.runnable), options.share)
        context = Context(
            store=store,
            registry=registry,
            options=options,
            root=plan.root,
            checkpoints=checkpoints,
            prompts=source.prompts,
            emit=teller.emit,
            stop=threading.Event(),
            executor=executor or LocalExecutor({}),
        )
        jobs = (
            options.jobs
            or context.executor.slots()
            or default_jobs(folder_bytes([resolve(plan.root, path) for path in checkpoints]))
        )
        execution = Execution(
            context=context,
            teller=teller,
            groups=groups,
            jobs=jobs,
            tokens=tokens,
            alone={case: dict(sides) for case, sides in done.items()},
            before=before,
        )
        execution.run()
        execution.find(wanted)
        wall = time.monotonic() - started
        engines = execution.engines()
        finish(
            store,
            LastRun(
                engines={
                    "distinct": engines.distinct,
                    "constructed": engines.constructed,
                    "reused_from_disk": engines.reused_from_disk,
                },
                wall_s=wall,
                engine_s=execution.engine_s,
                sampling=execution.sampling,
            ),
        )
    return RunReport(
        identity=binding,
        tokens=execution.tokens,
        sides={config.digest(): run for config in wanted if (run := execution.sides.get(config.digest()))},
        engines=engines,
        wall_s=wall,
        engine_s=execution.engine_s,
        refused=tuple(execution.refused),
        alone=execution.alone,
    )


def engine_groups(plan: Plan, registry: Lookup, options: RunOptions) -> tuple[Group, ...]:
    """The engines that the options ask for, also those of which everything is on disk."""
    if not options.share:
        return alone(plan.runnable, registry, options.only)
    return group([config for config in side_configs(plan) if options.only in (None, config.role)], registry)


def _refuse_unsampled(options: RunOptions, store: Store) -> None:
    if options.only is Role.TRAINING and not store.tokens.exists():
        raise InvalidInput(
            "the token batch is sampled by the production rollout, and this folder does not hold it yet",
            where="--only training",
            hint="run `--only rollout` into this folder first, on whatever machine can",
        )


def _plain(checkpoints: dict[str, CheckpointDigest]) -> dict[str, dict[str, str]]:
    return {path: {"weights": item.weights, "tokenizer": item.tokenizer} for path, item in checkpoints.items()}

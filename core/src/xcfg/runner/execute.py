"""Executes a plan: each distinct engine once, what is sealed on disk not again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from xcfg.model.experiment import SampleSource
from xcfg.model.plan import Plan
from xcfg.model.sample import TokenBatch
from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.plugin.protocols import Prompt
from xcfg.runner.artifacts import load_plan
from xcfg.runner.belongs import binding_of, checkpoints_of
from xcfg.runner.binding import LastRun, bind, check, finish
from xcfg.runner.checkpoints import remember, resolve
from xcfg.runner.context import Context
from xcfg.runner.durable import write_json
from xcfg.runner.events import Event
from xcfg.runner.execution import Execution
from xcfg.runner.frozen import freeze_tokens, load_frozen
from xcfg.runner.interrupt import like_ctrl_c
from xcfg.runner.jobs import default_jobs, folder_bytes
from xcfg.runner.lock import locked
from xcfg.runner.lookup import Lookup
from xcfg.runner.options import RunOptions
from xcfg.runner.plans import merged
from xcfg.runner.report import RunReport
from xcfg.runner.schedule import baseline_configs, group, side_configs, with_sampler
from xcfg.runner.specify import world_size
from xcfg.runner.store import Store
from xcfg.runner.tokens import read_batch, read_prompts


def execute(
    plan: Plan,
    registry: Lookup,
    out: Path,
    options: RunOptions,
    on_event: Callable[[Event], None] = lambda event: None,
) -> RunReport:
    """Run the plan's side runs into the folder ``out`` and report all of them.

    A failing side run is part of the report. Raises InvalidInput (wrong tokens or checkpoint, a folder of another
    experiment or in use) before anything is touched, PluginError, ArtifactError (the folder is damaged),
    EnvironmentFault (no room for the folder's own files), and KeyboardInterrupt once the children are gone.
    """
    started = time.monotonic()
    store = Store(out.absolute())
    configs = side_configs(plan)
    wanted = (*configs, *baseline_configs(plan))
    source = plan.experiment.tokens.sample
    sampler = plan.case(plan.baseline).rollout
    groups = group(configs, registry)
    for item in groups:
        world_size(item.engine, registry.scorer(item.engine.scorer))
    checkpoints = checkpoints_of(plan, (*wanted, sampler), store)
    binding = binding_of(plan, registry, checkpoints)
    check(store, binding)
    known = load_frozen(store.tokens)
    prompts, recorded = _source(plan, source) if known is None else ((), None)
    with like_ctrl_c(), locked(store.root):
        check(store, binding)
        bind(store, binding, _plain(checkpoints))
        write_json(store.plan, merged(load_plan(store.root) if store.plan.is_file() else None, plan))
        remember(plan.root, checkpoints, store.checkpoints)
        tokens = known or load_frozen(store.tokens) or _freeze(store, recorded, plan)
        if tokens is None and source is not None:
            groups = with_sampler(groups, sampler, source, registry)
        lock = threading.Lock()

        def emit(event: Event) -> None:
            with lock:
                on_event(event)

        context = Context(
            store=store,
            registry=registry,
            options=options,
            root=plan.root,
            checkpoints=checkpoints,
            prompts=prompts,
            emit=emit,
            stop=threading.Event(),
        )
        jobs = options.jobs or default_jobs(folder_bytes([resolve(plan.root, path) for path in checkpoints]))
        execution = Execution(context=context, groups=groups, jobs=jobs, tokens=tokens)
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
    )


def _plain(checkpoints: dict[str, CheckpointDigest]) -> dict[str, dict[str, str]]:
    return {path: {"weights": item.weights, "tokenizer": item.tokenizer} for path, item in checkpoints.items()}


def _source(plan: Plan, source: SampleSource | None) -> tuple[tuple[Prompt, ...], TokenBatch | None]:
    """The prompts to sample from, or the recorded batch."""
    if source is not None:
        return read_prompts(Path(plan.root) / source.prompts), None
    return (), read_batch(Path(plan.root) / plan.experiment.tokens.recorded)


def _freeze(store: Store, recorded: TokenBatch | None, plan: Plan) -> TokenBatch | None:
    if recorded is not None:
        freeze_tokens(store.tokens, recorded, {"recorded": plan.experiment.tokens.recorded})
    return recorded

"""What an execution would build, score and reuse, told beforehand: nothing is written and no lock is taken."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from xcfg.model.case import SideConfig
from xcfg.model.json import tupled
from xcfg.model.plan import Plan
from xcfg.runner.belongs import check_belongs
from xcfg.runner.checkpoints import resolve
from xcfg.runner.execute import engine_groups
from xcfg.runner.frozen import load_frozen
from xcfg.runner.jobs import default_jobs, folder_bytes
from xcfg.runner.lookup import Lookup
from xcfg.runner.options import RunOptions
from xcfg.runner.reuse import Shelf, Stored
from xcfg.runner.schedule import Group, with_sampler
from xcfg.runner.sources import Source
from xcfg.runner.store import Store
from xcfg.runner.timings import Timings, makespan, measured


@frozen(kw_only=True)
class SideForecast:
    """One side run, of ``cases`` cases. ``reused`` is the attempt that is taken, None where it is executed.

    ``refused`` says why a newest attempt on disk is not taken. ``side_id`` is empty before the tokens are frozen.
    """

    config: SideConfig
    cases: int
    side_id: str = ""
    reused: int | None = None
    refused: str = ""


@frozen(kw_only=True)
class EngineForecast:
    """One engine and all its side runs. ``samples``: it samples the token batch first.

    ``estimate_s`` is 0 where it is not built, None where nothing like it was measured in the folder.
    """

    key: str
    config: SideConfig
    samples: bool
    sides: tuple[SideForecast, ...] = field(converter=tupled)
    cases: int
    estimate_s: float | None

    @property
    def built(self) -> bool:
        """Whether anything is left for it to do."""
        return self.samples or any(side.reused is None for side in self.sides)


@frozen(kw_only=True)
class Forecast:
    """The engines in their order. ``tokens`` is ``frozen``, ``recorded`` or ``sampled``: where the batch comes from.

    ``estimate_s`` are wall seconds with ``jobs`` engines at once, None where one engine's is not known.
    """

    engines: tuple[EngineForecast, ...] = field(converter=tupled)
    tokens: str
    jobs: int
    estimate_s: float | None


def forecast(plan: Plan, registry: Lookup, out: Path, options: RunOptions, slots: int | None = None) -> Forecast:
    """What :func:`xcfg.runner.execute.execute` would do now, with ``slots`` of an executor.

    Raises as it does before it touches anything.
    """
    store = Store(out.absolute())
    checkpoints = check_belongs(plan, registry, out)
    batch = load_frozen(store.tokens)
    shelf = None
    if batch is not None:
        shelf = Shelf(
            store=store,
            registry=registry,
            token_digest=batch.digest(),
            checkpoints=checkpoints,
            repeat=options.repeat,
        )
    source = Source.of(plan) if batch is None else Source()
    groups = engine_groups(plan, registry, options)
    if source.sample is not None:
        groups = with_sampler(groups, plan.case(plan.baseline).rollout, source.sample, registry)
    users = _users(plan)
    timings = measured(store)
    engines = [_engine(item, shelf, options, users, timings) for item in groups]
    jobs = options.jobs or slots or default_jobs(folder_bytes(_checkpoint_folders(plan)))
    return Forecast(
        engines=engines,
        tokens="frozen" if batch is not None else "recorded" if source.sample is None else "sampled",
        jobs=jobs,
        estimate_s=makespan([item.estimate_s for item in engines if item.built], jobs),
    )


def _engine(
    group: Group, shelf: Shelf | None, options: RunOptions, users: Mapping[str, set[str]], timings: Timings
) -> EngineForecast:
    sides = [_side(config, shelf, options, users) for config in group.sides]
    left = sum(side.reused is None for side in sides)
    cases = {group.case} if group.case else set().union(*(users.get(side.digest(), set()) for side in group.sides))
    samples = group.sample is not None
    estimate: float | None = 0.0
    if left or samples:
        config = group.engine
        estimate = None if samples else timings.estimate(config.role, config.scorer, left)
    return EngineForecast(
        key=group.key, config=group.engine, samples=samples, sides=sides, cases=len(cases), estimate_s=estimate
    )


def _side(config: SideConfig, shelf: Shelf | None, options: RunOptions, users: Mapping[str, set[str]]) -> SideForecast:
    cases = len(users.get(config.digest(), ())) if options.share else 1
    if shelf is None:
        return SideForecast(config=config, cases=cases)
    found = shelf.find(config)
    reused = found.serves and options.resume and options.share
    return SideForecast(
        config=config,
        cases=cases,
        side_id=found.side_id,
        reused=found.newest.number if reused and found.newest is not None else None,
        refused="" if reused else _refusal(found, options),
    )


def _refusal(found: Stored, options: RunOptions) -> str:
    """Why an attempt on disk is not reused; empty where there is none."""
    if found.newest is None:
        return ""
    attempt = f"attempt {found.newest.number}"
    if found.newest.failure is not None:
        return f"{attempt} failed: {found.newest.failure.status}: {found.newest.failure.reason}"
    if found.objection:
        return f"{attempt} is refused: {found.objection}"
    return f"{attempt} is left alone: {'--no-resume' if options.share else '--no-share'}"


def _users(plan: Plan) -> dict[str, set[str]]:
    """The cases that are run of each side configuration, by digest."""
    users: dict[str, set[str]] = {}
    for case in plan.runnable:
        for config in (case.rollout, case.training):
            users.setdefault(config.digest(), set()).add(case.id)
    return users


def _checkpoint_folders(plan: Plan) -> list[Path]:
    paths = {config.checkpoint.path for case in plan.runnable for config in (case.rollout, case.training)}
    return [folder for path in sorted(paths) if (folder := resolve(plan.root, path)).is_dir()]

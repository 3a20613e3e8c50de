"""From a plan to engine groups: which side runs share one engine, and what is left to do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import evolve, field, frozen

from xcfg.errors import PluginError
from xcfg.model.case import Case, SideConfig
from xcfg.model.experiment import SampleSource
from xcfg.model.ids import digest
from xcfg.model.json import tupled
from xcfg.model.knob import Lifecycle
from xcfg.model.plan import Plan
from xcfg.model.scorer import Role
from xcfg.runner.builds import build_knobs, build_tasks
from xcfg.runner.lookup import Lookup


@frozen(kw_only=True)
class Group:
    """Side runs that one engine scores, in plan order.

    ``engine`` is the configuration the engine is opened with: that of the first side run, or of the sampler where
    ``sample`` asks for the token batch first (then ``sides`` may be empty). ``case`` is set where the engine is built
    for a side of that case alone.
    """

    key: str
    engine: SideConfig
    sides: tuple[SideConfig, ...] = field(default=(), converter=tupled)
    sample: SampleSource | None = None
    case: str = ""


def side_configs(plan: Plan) -> tuple[SideConfig, ...]:
    """The distinct side configurations of the cases that are run, in plan order."""
    found: dict[str, SideConfig] = {}
    for case in plan.runnable:
        for config in (case.rollout, case.training):
            found.setdefault(config.digest(), config)
    return tuple(found.values())


def baseline_configs(plan: Plan) -> tuple[SideConfig, ...]:
    """Both sides of the baseline, which a slice or filter may have left out of the cases that are run."""
    baseline = plan.case(plan.baseline)
    return (baseline.rollout, baseline.training) if baseline.rejected is None else ()


def engine_key(config: SideConfig, registry: Lookup) -> str:
    """Digest of what an engine is built from: the configuration without its request-time values.

    Build-time values count as the artifacts they choose, so that a process never has to load a second one. Raises
    PluginError where a knob of the configuration has no materializer for its scorer and chooses no build.
    """
    materializers, builds = registry.materializers(config.scorer), build_tasks(config, registry)
    chosen = build_knobs(builds)
    for name in config.knobs:
        if name not in materializers and name not in chosen:
            raise PluginError(f"no materializer applies {name} to the scorer {config.scorer}", where=name)
    knobs = {
        name: value
        for name, value in config.knobs.items()
        if name not in chosen and materializers[name].lifecycle is not Lifecycle.REQUEST
    }
    operators = {
        name: choice
        for name, choice in config.operators.items()
        if registry.backend(name, choice.backend).lifecycle is not Lifecycle.REQUEST
    }
    artifacts = {task.operator: task.build.fingerprint for task in builds}
    return digest({**evolve(config, knobs=knobs, operators=operators).key(), "builds": artifacts})


def group(configs: Iterable[SideConfig], registry: Lookup) -> tuple[Group, ...]:
    """The engines the configurations need, in the order of their first side run."""
    groups: dict[str, list[SideConfig]] = {}
    for config in configs:
        groups.setdefault(engine_key(config, registry), []).append(config)
    return tuple(Group(key=key, engine=sides[0], sides=sides) for key, sides in groups.items())


def alone(cases: Iterable[Case], registry: Lookup, only: Role | None = None) -> tuple[Group, ...]:
    """An engine for each side of each case, of the role ``only`` where it is given; none is shared."""
    return tuple(
        Group(key=engine_key(config, registry), engine=config, sides=(config,), case=case.id)
        for case in cases
        for config in (case.rollout, case.training)
        if only in (None, config.role)
    )


def with_sampler(
    groups: tuple[Group, ...], sampler: SideConfig, source: SampleSource, registry: Lookup
) -> tuple[Group, ...]:
    """The groups with the one that samples the token batch first; it is added where no shared one has its engine."""
    key = engine_key(sampler, registry)
    same = [item for item in groups if item.key == key and not item.case]
    first = evolve(same[0], engine=sampler, sample=source) if same else Group(key=key, engine=sampler, sample=source)
    return (first, *(item for item in groups if item not in same))


def remaining(groups: tuple[Group, ...], done: Callable[[SideConfig], bool]) -> tuple[Group, ...]:
    """The groups without the side runs that are done; those with nothing left are gone."""
    left = (evolve(item, sides=[side for side in item.sides if not done(side)]) for item in groups)
    return tuple(
        evolve(item, engine=item.engine if item.sample else item.sides[0]) for item in left if item.sides or item.sample
    )

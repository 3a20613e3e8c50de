"""What loading each plugin costs: seconds of its import and of its hooks, and the heavy modules it brings."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from attrs import field, frozen

from xcfg.model.json import tupled
from xcfg.plugin.check_hooks import new_manager
from xcfg.plugin.inventory import PluginInfo, inventory
from xcfg.plugin.manager import REGISTER, LoadedPlugin, Watch, load_plugins
from xcfg.plugin.registry import Registry

_HEAVY = (
    "torch", "numpy", "vllm", "transformers", "megatron", "deepspeed", "transformer_engine", "apex", "flash_attn",
    "triton", "ray", "submitit", "safetensors", "tokenizers", "pandas", "pyarrow", "scipy", "xarray", "zarr", "jax",
    "tensorflow",
)  # fmt: skip
"""Import packages that take long; those that descriptors say their engines require are added."""

_Who = tuple[str, str]
"""Distribution and name: the rest of what is known of a plugin changes while it is loaded."""


@frozen(kw_only=True)
class HookTrace:
    """One hook that a plugin implements, with how many descriptors it gave: None where it failed.

    ``seconds`` is None where it was not called. Only hooks of the register phase are called: those of later phases need
    an experiment.
    """

    hook: str
    descriptors: int | None = None
    seconds: float | None = None


@frozen(kw_only=True)
class PluginTrace:
    """One plugin. ``import_s`` are the seconds to import its module, None where that was not tried.

    ``heavy`` are the packages that were not there before the plugin was loaded.
    """

    info: PluginInfo
    import_s: float | None = None
    heavy: tuple[str, ...] = field(default=(), converter=tupled)
    hooks: tuple[HookTrace, ...] = field(default=(), converter=tupled)


def trace_plugins(disabled: Collection[str] = (), *, plugins: bool = True) -> tuple[PluginTrace, ...]:
    """Load every plugin as a command does, in the same order, and take the time of each.

    ``disabled`` and ``plugins`` as in :func:`xcfg.plugin.inventory.inventory`. Modules that an earlier plugin imported
    cost a later one nothing, here as there. Never raises for a broken plugin: ``info`` has its error.
    """
    watch, manager = _Clock(), new_manager()
    loaded = load_plugins(inventory(disabled, plugins=plugins), manager, watch)
    heavy = {*_HEAVY, *_engines(loaded)}
    judged = Registry(loaded, manager).plugins
    return tuple(watch.trace(plugin, info, heavy) for plugin, info in zip(loaded, judged, strict=True))


def _engines(loaded: Sequence[LoadedPlugin]) -> Iterator[str]:
    """Import packages of the engines that the plugins are for."""
    for plugin in loaded:
        for _, descriptor in plugin.contribution.items():
            yield from (name.partition(".")[0] for name in getattr(descriptor, "requires", ()))


class _Clock(Watch):
    """Keeps what happened, by plugin."""

    def __init__(self) -> None:
        self._import_s: dict[_Who, float] = {}
        self._brought: dict[_Who, set[str]] = {}
        self._hooks: dict[_Who, dict[str, float | None]] = {}
        self._given: dict[tuple[_Who, str], int] = {}

    @contextmanager
    def importing(self, info: PluginInfo) -> Iterator[None]:
        start = perf_counter()
        try:
            with self._bringing(info):
                yield
        finally:
            self._import_s[_who(info)] = perf_counter() - start

    def found(self, info: PluginInfo, hooks: Sequence[str]) -> None:
        order = [*REGISTER, *sorted(set(hooks) - set(REGISTER))]
        self._hooks[_who(info)] = {name: None for name in order if name in hooks}

    @contextmanager
    def asking(self, info: PluginInfo, hook: str) -> Iterator[None]:
        times, start = self._hooks[_who(info)], perf_counter()
        try:
            with self._bringing(info):
                yield
        finally:
            times[hook] = (times[hook] or 0.0) + perf_counter() - start

    def given(self, info: PluginInfo, hook: str, number: int) -> None:
        key = _who(info), hook
        self._given[key] = self._given.get(key, 0) + number

    @contextmanager
    def _bringing(self, info: PluginInfo) -> Iterator[None]:
        before = _packages()
        try:
            yield
        finally:
            self._brought.setdefault(_who(info), set()).update(_packages() - before)

    def trace(self, plugin: LoadedPlugin, judged: PluginInfo, heavy: Collection[str]) -> PluginTrace:
        """What is known of one plugin; ``judged`` is its state after all were loaded."""
        who = _who(plugin.info)
        hooks = [
            HookTrace(hook=name, descriptors=self._given.get((who, name)), seconds=seconds)
            for name, seconds in self._hooks.get(who, {}).items()
        ]
        brought = sorted(self._brought.get(who, set()) & set(heavy))
        return PluginTrace(info=judged, import_s=self._import_s.get(who), heavy=brought, hooks=hooks)


def _who(info: PluginInfo) -> _Who:
    return info.distribution, info.name


def _packages() -> set[str]:
    return {name.partition(".")[0] for name in list(sys.modules)}

"""Everything the plugins registered, each object by its id and with exactly one owner."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pluggy
from attrs import evolve

from xcfg.errors import InvalidInput, PluginError
from xcfg.model.case import Case, Rejection, SideConfig
from xcfg.model.executor import ExecutorDescriptor
from xcfg.model.experiment import ProfileSpec, SliceSpec
from xcfg.model.ids import canonical
from xcfg.model.importer import FileFormatDescriptor, ImporterDescriptor
from xcfg.model.json import Json
from xcfg.model.knob import Knob
from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, Role, ScorerDescriptor
from xcfg.model.tolerance import ToleranceContract
from xcfg.model.weights import WEIGHTS, opened_weights
from xcfg.plugin.contribution import Key, backend_key, describe_key, materializer_key
from xcfg.plugin.hooks import ask, call, implementations
from xcfg.plugin.index import build_index
from xcfg.plugin.inventory import CORE, PluginInfo, PluginState, inventory
from xcfg.plugin.manager import LoadedPlugin, load_plugins, new_manager
from xcfg.plugin.missing import missing
from xcfg.plugin.raised import said, shown
from xcfg.plugin.tolerance import load_contract

T = TypeVar("T")


def load_registry(
    *,
    disabled: Collection[str] = (),
    plugins: bool = True,
    allow_fake: bool = False,
    interpreters: Mapping[Role, str] = MappingProxyType({}),
) -> Registry:
    """Import every plugin that may be used and take in what it registers. ``interpreters`` as in :class:`Registry`.

    ``disabled`` and ``plugins`` as in :func:`xcfg.plugin.inventory.inventory`; the variable ``XCFG_DISABLE_PLUGINS``
    is the caller's to read (:func:`xcfg.plugin.inventory.disabled_by_environment`). Never raises for a broken plugin:
    see :attr:`Registry.failures`.
    """
    manager = new_manager()
    loaded = load_plugins(inventory(disabled, plugins=plugins), manager)
    return Registry(loaded, manager, allow_fake=allow_fake, interpreters=interpreters)


def _texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(item, str) for pair in value.items() for item in pair)


class Registry:
    """Descriptors by id, and the hooks of the later phases.

    Every lookup of one id raises PluginError where the plugin that registered it is broken, clashes with another or
    is not installed; an unknown knob, profile or slice raises InvalidInput. Both name the nearest known id or the pip
    line.
    """

    def __init__(
        self,
        loaded: Sequence[LoadedPlugin],
        manager: pluggy.PluginManager | None = None,
        *,
        allow_fake: bool = False,
        interpreters: Mapping[Role, str] = MappingProxyType({}),
    ) -> None:
        """Index the plugins. ``interpreters`` are those of the sides' ranks where it is not this one.

        Without ``manager`` (descriptors of another interpreter) no hook of a later phase is called.
        """
        self._interpreters = dict(interpreters)
        self._loaded = tuple(loaded)
        self._index = build_index(self._loaded)
        self._manager = manager or new_manager()
        self._allow_fake = allow_fake
        self._materializers: dict[str, Mapping[str, MaterializerDescriptor]] = {}
        self._hooks: dict[str, list[pluggy.HookImpl]] = {}

    def interpreter(self, role: Role) -> str:
        """The interpreter of a side's ranks; empty for this one."""
        return self._interpreters.get(role, "")

    @property
    def loaded(self) -> tuple[LoadedPlugin, ...]:
        """Every plugin with its descriptors, as they were loaded."""
        return self._loaded

    @property
    def plugins(self) -> tuple[PluginInfo, ...]:
        """Every installed plugin with its state after loading."""
        return tuple(self._judged(plugin) for plugin in self._loaded)

    @property
    def failures(self) -> Mapping[str, str]:
        """Distribution to what is wrong with it; empty where all is well."""
        return self._index.failures

    def knobs(self) -> Mapping[str, Knob]:
        """Every knob by name, in order of name."""
        return self._all("knob", Knob)

    def knob(self, name: str) -> Knob:
        """The knob of this name. Raises InvalidInput with the nearest name where there is none."""
        return self._one(("knob", name), Knob)

    def scorers(self) -> Mapping[str, ScorerDescriptor]:
        """Every scorer by id, fakes included."""
        return self._all("scorer", ScorerDescriptor)

    def scorer(self, id: str) -> ScorerDescriptor:
        """The scorer of this id. Raises InvalidInput for a fake that was not allowed."""
        return self._real(self._one(("scorer", id), ScorerDescriptor), ("scorer", id))

    def materializer(self, knob: str, scorer: str) -> MaterializerDescriptor | None:
        """How a knob is applied to a scorer; None where the scorer does not know it."""
        if knob == WEIGHTS:
            return self._opened(scorer).get(WEIGHTS)
        key = materializer_key(knob, scorer)
        known = key in self._index.owned or key in self._index.broken
        return self._one(key, MaterializerDescriptor) if known else None

    def materializers(self, scorer: str) -> Mapping[str, MaterializerDescriptor]:
        """The usable materializers of a scorer by knob name."""
        if scorer not in self._materializers:  # asked for every side run, over all knobs of all scorers
            every = self._all("materializer", MaterializerDescriptor).values()
            own = {item.knob: item for item in every if item.scorer == scorer} | self._opened(scorer)
            self._materializers[scorer] = MappingProxyType(own)
        return self._materializers[scorer]

    def _opened(self, scorer: str) -> dict[str, MaterializerDescriptor]:
        """What the host itself applies to a scorer, by opening it: the weights of one that can be the rollout."""
        known = self.scorers().get(scorer)
        return {WEIGHTS: opened_weights(scorer)} if known and Role.ROLLOUT in known.roles else {}

    def backends(self) -> Mapping[tuple[str, str], KernelBackendDescriptor]:
        """Every kernel backend by (operator, id), fakes included."""
        every = self._all("backend", KernelBackendDescriptor).values()
        return MappingProxyType({(item.operator, item.id): item for item in every})

    def backend(self, operator: str, id: str) -> KernelBackendDescriptor:
        """The backend of this id for an operator. Raises InvalidInput for a fake that was not allowed."""
        key = backend_key(operator, id)
        return self._real(self._one(key, KernelBackendDescriptor), key)

    def profiles(self) -> Mapping[str, ProfileSpec]:
        """Every registered ablation profile by id."""
        return self._all("profile", ProfileSpec)

    def profile(self, id: str) -> ProfileSpec:
        """The ablation profile of this id. Raises InvalidInput with the nearest id where there is none."""
        return self._one(("profile", id), ProfileSpec)

    def slices(self) -> Mapping[str, SliceSpec]:
        """Every registered slice by id."""
        return self._all("slice", SliceSpec)

    def slice(self, id: str) -> SliceSpec:
        """The slice of this id. Raises InvalidInput with the nearest id where there is none."""
        return self._one(("slice", id), SliceSpec)

    def contracts(self) -> Mapping[str, ToleranceContract]:
        """Every registered tolerance contract by id."""
        return self._all("contract", ToleranceContract)

    def contract(self, id_or_path: str, *, root: Path = Path()) -> ToleranceContract:
        """The contract of an id, or the one in a JSON file; a relative path starts at ``root``.

        What ends in ``.json`` is a path. Raises InvalidInput where the file is missing or wrong.
        """
        if id_or_path.endswith(".json"):
            return load_contract(root / id_or_path)
        return self._one(("contract", id_or_path), ToleranceContract)

    def importers(self) -> Mapping[str, ImporterDescriptor]:
        """Every importer of recorded logprobs by id."""
        return self._all("importer", ImporterDescriptor)

    def importer(self, id: str) -> ImporterDescriptor:
        """The importer of this id."""
        return self._one(("importer", id), ImporterDescriptor)

    def file_formats(self) -> Mapping[str, FileFormatDescriptor]:
        """Every file format by id."""
        return self._all("file_format", FileFormatDescriptor)

    def executors(self) -> Mapping[str, ExecutorDescriptor]:
        """Every executor by id."""
        return self._all("executor", ExecutorDescriptor)

    def executor(self, id: str) -> ExecutorDescriptor:
        """The executor of this id."""
        return self._one(("executor", id), ExecutorDescriptor)

    def owner(self, kind: str, name: str | tuple[str, str]) -> str:
        """The distribution that registered an id.

        A backend is named ``(operator, id)``, a materializer ``(knob, scorer)``.
        """
        if kind == "materializer" and name[0] == WEIGHTS:
            return CORE
        if isinstance(name, tuple):
            key = backend_key(*name) if kind == "backend" else materializer_key(*name)
        else:
            key = (kind, name)
        if key not in self._index.owned:
            raise missing(key, self._index, self.plugins)
        return self._index.owned[key].distribution

    def reject_case(self, case: Case, baseline: Case) -> Rejection | None:
        """The vetoes of the plugins on a case as one; None where there is none. Raises PluginError if a hook fails."""
        vetoes: list[Rejection] = []
        for name, value in self._answers("xcfg_reject_case", case=case, baseline=baseline):
            if isinstance(value, Rejection):
                vetoes.append(value)
            elif value is not None:
                raise self._broken(name, f"xcfg_reject_case must return a Rejection or None, got {shown(value)}")
        if not vetoes:
            return None
        return Rejection(kind=vetoes[0].kind, reason="; ".join(veto.reason for veto in vetoes))

    def process_environment(self, side: SideConfig) -> dict[str, str]:
        """The variables the plugins ask for. Raises PluginError where two disagree or a hook fails."""
        merged: dict[str, str] = {}
        owners: dict[str, str] = {}
        for name, value in self._answers("xcfg_process_environment", side=side):
            if not _texts(value):
                raise self._broken(name, f"xcfg_process_environment must return texts by name, got {shown(value)}")
            for variable, text in value.items():
                if merged.setdefault(variable, text) != text:
                    first = self._distribution(owners[variable])
                    message = f"{first} sets {variable} to {merged[variable]!r}, {self._distribution(name)} to {text!r}"
                    raise PluginError(message, hint=f"leave one out with -p no:{owners[variable]} or -p no:{name}")
                owners.setdefault(variable, name)
        return merged

    def environment_facts(self, role: str) -> dict[str, Json]:
        """Facts by plugin name. They decide nothing, so a hook that fails leaves its error as its fact."""
        facts: dict[str, Json] = {}
        for answer in ask(self._manager, "xcfg_environment_facts", role=role):
            if answer.error is not None:
                facts[answer.plugin] = {"error": said(answer.error)}
                continue
            try:
                canonical(answer.value)
            except Exception as error:  # the codec's own errors vary with what the plugin returned
                facts[answer.plugin] = {"error": f"not JSON: {error}"}
            else:
                facts[answer.plugin] = answer.value
        return facts

    def notify(self, hook: str, **arguments: Any) -> tuple[str, ...]:
        """Tell the observers; returns a sentence for each that failed, which changes no result."""
        return tuple(
            f"{self._distribution(answer.plugin)}: {hook} raised {said(answer.error)}"
            for answer in ask(self._manager, hook, **arguments)
            if answer.error is not None
        )

    def _all(self, kind: str, cls: type[T]) -> Mapping[str, T]:
        found = sorted((key[1], item.value) for key, item in self._index.owned.items() if key[0] == kind)
        return MappingProxyType({name: value for name, value in found if isinstance(value, cls)})

    def _one(self, key: Key, cls: type[T]) -> T:
        item = self._index.owned.get(key)
        if item is None or not isinstance(item.value, cls):
            raise missing(key, self._index, self.plugins)
        return item.value

    def _real(self, value: T, key: Key) -> T:
        if getattr(value, "fake", False) and not self._allow_fake:
            raise InvalidInput(f"{describe_key(key)} is a fake for tests", hint="allowed only with --allow-fake")
        return value

    def _answers(self, hook: str, **arguments: Any) -> list[tuple[str, Any]]:
        """Answers by plugin name; the first failure is raised, for a decision must not be taken without a voice."""
        answers = []
        for implementation in self._implementations(hook):
            try:
                answers.append((implementation.plugin_name, call(implementation, arguments)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                text = f"{hook} raised {said(error)}"
                raise self._broken(implementation.plugin_name, text) from error
        return answers

    def _implementations(self, hook: str) -> list[pluggy.HookImpl]:
        """Looked up once: a plan of thousands of cases asks for each."""
        if hook not in self._hooks:
            self._hooks[hook] = implementations(self._manager, hook)
        return self._hooks[hook]

    def _broken(self, plugin: str, message: str) -> PluginError:
        return PluginError(f"{self._distribution(plugin)}: {message}", hint=f"leave it out with -p no:{plugin}")

    def _distribution(self, plugin: str) -> str:
        return next((item.info.distribution for item in self._loaded if item.info.name == plugin), plugin)

    def _judged(self, plugin: LoadedPlugin) -> PluginInfo:
        fault = self.failures.get(plugin.info.distribution, "")
        if plugin.info.state is not PluginState.LOADED or not fault:
            return plugin.info
        return evolve(plugin.info, state=PluginState.FAILED, error=fault)

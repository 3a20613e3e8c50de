"""The configuration of one side of a case, and what keeps its scorer from applying it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import field, frozen

from xcfg.model.case import SideConfig
from xcfg.model.experiment import Experiment
from xcfg.model.json import Json
from xcfg.model.kernel import LOGP_BACKEND, SELECTED_LOGPROB, OperatorChoice
from xcfg.model.knob import CORE_PREFIXES, Knob
from xcfg.model.scorer import MaterializerDescriptor, Role
from xcfg.planner.assignment import same
from xcfg.planner.catalog import Catalog
from xcfg.planner.draft import Pick


@frozen(kw_only=True)
class SideRequest:
    """What a side is built from.

    ``values`` is the value of every knob in the case; ``named`` are the knobs the user gave, ``own`` those of them the
    case sets itself. ``replaced`` is True where the case has another scorer on this side than the baseline.
    """

    role: Role
    pick: Pick
    values: Mapping[str, Json]
    named: Collection[str]
    own: Collection[str]
    replaced: bool


@frozen(kw_only=True)
class Side:
    """``unsupported`` are sentences; ``idle`` the descriptors' sentences for named knobs without a meaning here."""

    config: SideConfig
    unsupported: tuple[str, ...] = ()
    idle: Mapping[str, str] = field(factory=dict)


def build_side(request: SideRequest, experiment: Experiment, catalog: Catalog, knobs: Mapping[str, Knob]) -> Side:
    """Sort every knob that applies to the role into requested, inapplicable and unsupported."""
    return _Builder(request, experiment, catalog).build(knobs)


class _Builder:
    def __init__(self, request: SideRequest, experiment: Experiment, catalog: Catalog) -> None:
        self.request = request
        self.scorer = request.pick.scorer
        self.catalog = catalog
        self.choices = _choices(experiment, request.role)
        self.knobs: dict[str, Json] = {}
        self.inapplicable: dict[str, str] = {}
        self.idle: dict[str, str] = {}
        self.unsupported: list[str] = []

    def build(self, knobs: Mapping[str, Knob]) -> Side:
        self._check_role()
        for name, knob in knobs.items():
            if knob.applies_to(self.request.role.value):
                self._place(name, self._value(name), self.catalog.materializer(name, self.scorer))
        operators = self._operators()
        config = SideConfig(
            role=self.request.role,
            scorer=self.scorer,
            checkpoint=self.request.pick.checkpoint,
            knobs=self.knobs,
            inapplicable=self.inapplicable,
            operators=operators,
        )
        return Side(config=config, unsupported=tuple(self.unsupported), idle=self.idle)

    def _check_role(self) -> None:
        roles = self.catalog.scorer(self.scorer).roles
        if self.request.role not in roles:
            can = " and ".join(role.value for role in roles)
            self.unsupported.append(f"scorer {self.scorer!r} plays {can}, not {self.request.role.value}")

    def _value(self, name: str) -> Json:
        choice = self.choices.get(SELECTED_LOGPROB)
        if name == LOGP_BACKEND and choice is not None:
            return choice.backend
        return self.request.values.get(name)

    def _place(self, name: str, value: Json, how: MaterializerDescriptor | None) -> None:
        named = name in self.request.named and value is not None
        if how is None:
            if named:
                self._missing(name, value)
        elif how.inapplicable:
            self.inapplicable[name] = how.inapplicable
            if named:
                self.idle[name] = how.inapplicable
        else:
            self.knobs[name] = value
            if value is not None and how.values and not any(same(value, item) for item in how.values):
                self.unsupported.append(self._refusal(name, value, how))

    def _missing(self, name: str, value: Json) -> None:
        """A named knob that the scorer does not know.

        What the baseline gives to its own engine (``vllm.seed``) has no meaning for an engine that takes its place.
        """
        engine = name.partition(".")[0]
        if self.request.replaced and name not in self.request.own and engine not in CORE_PREFIXES:
            self.inapplicable[name] = f"{name} is a setting of {engine}, and scorer {self.scorer} takes its place here"
            return
        self.knobs[name] = value
        self.unsupported.append(
            f"scorer {self.scorer!r} cannot apply {name}={_shown(value)}: it does not know the knob"
        )

    def _refusal(self, name: str, value: Json, how: MaterializerDescriptor) -> str:
        can = ", ".join(_shown(item) for item in how.values)
        given = "" if name in self.request.named else " (its default)"
        reason = f" ({how.reason})" if how.reason else ""
        return f"scorer {self.scorer!r} cannot apply {name}={_shown(value)}{given} but only {can}{reason}"

    def _operators(self) -> dict[str, OperatorChoice]:
        """Operators of this side: those chosen in the experiment, and the one that ``logp.backend`` names."""
        found = {name: choice for name, choice in self.choices.items() if name != SELECTED_LOGPROB}
        chosen = self.choices.get(SELECTED_LOGPROB)
        how = self.catalog.materializer(LOGP_BACKEND, self.scorer)
        if how is not None and not how.inapplicable:
            backend = self.knobs.get(LOGP_BACKEND)
            if backend is not None:
                options = {} if chosen is None else chosen.options
                found[SELECTED_LOGPROB] = OperatorChoice(backend=backend, options=options)
        elif chosen is not None:
            found[SELECTED_LOGPROB] = chosen
            why = "it does not know the operator" if how is None else how.inapplicable
            self.unsupported.append(f"scorer {self.scorer!r} takes no backend for {SELECTED_LOGPROB}: {why}")
        for name, choice in found.items():
            roles = self.catalog.backend(name, choice.backend).roles
            if self.request.role not in roles:
                role = self.request.role.value
                self.unsupported.append(f"backend {choice.backend!r} of {name} does not serve the {role} side")
        return found


def _choices(experiment: Experiment, role: Role) -> dict[str, OperatorChoice]:
    sides = {name: getattr(both, role.value) for name, both in experiment.operators.items()}
    return {name: choice for name, choice in sides.items() if choice is not None}


def _shown(value: Json) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

"""The configuration of one side of a case, and what keeps its scorer from applying it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from xcfg.model.case import SideConfig
from xcfg.model.experiment import Checkpoint, Experiment
from xcfg.model.json import Json
from xcfg.model.kernel import LOGP_BACKEND, SELECTED_LOGPROB, OperatorChoice
from xcfg.model.scorer import Role
from xcfg.model.weights import WEIGHTS
from xcfg.planner.build_knobs import Asked, Chosen, choose, names_knob
from xcfg.planner.catalog import Catalog
from xcfg.planner.draft import Pick
from xcfg.planner.placement import Placement, Placer

Sentences = tuple[tuple[str, str], ...]
"""(knob, sentence) for each reason against a side. Where no knob is at fault the name is an operator's, or empty."""


_NO_BUILDS = Chosen()


@frozen(kw_only=True)
class Side:
    """``idle`` are the descriptors' sentences for named knobs without a meaning here, ``idle_alone`` those of them
    that only this role carries.
    """

    config: SideConfig
    unsupported: Sentences = ()
    idle: Mapping[str, str] = field(factory=dict)
    idle_alone: frozenset[str] = frozenset()


@frozen(kw_only=True)
class _Placed:
    """The placements of all knobs of a side, sorted by what they are."""

    knobs: Mapping[str, Json]
    inapplicable: Mapping[str, str]
    unsupported: Sentences
    idle: Mapping[str, str]
    idle_alone: frozenset[str]


class SideBuilder:
    """Builds the sides of one role with one scorer and checkpoint.

    A side is the baseline's with what a case sets placed anew, so that it costs little more than what it changes.
    """

    def __init__(
        self, role: Role, pick: Pick, baseline: Pick, values: Mapping[str, Json], experiment: Experiment,
        catalog: Catalog,
    ) -> None:  # fmt: skip
        """``values`` is the baseline's value of every knob, ``baseline`` what scores this role in it."""
        self._role = role
        self._pick = pick
        self._catalog = catalog
        self._choices = _choices(experiment, role)
        self._derived = experiment.derived
        self._wrong_role = _wrong_role(role, pick.scorer, catalog)
        usual = {**values, LOGP_BACKEND: self._value(LOGP_BACKEND, values.get(LOGP_BACKEND))}
        named, replaced = set(experiment.baseline), pick.scorer != baseline.scorer
        self.placer = Placer(role, pick.scorer, named, usual, replaced, catalog)
        self._bound: dict[Json, tuple[dict[str, OperatorChoice], Sentences]] = {}
        self._usual = self._place(self.placer.usual)

    def build(self, own: Mapping[str, Json]) -> Side:
        """The side of a case that sets ``own``; knobs that the role does not carry are passed over."""
        usual = self.placer.usual
        fresh = {name: self.placer.own(name, self._value(name, value)) for name, value in own.items() if name in usual}
        if all(item.plain and usual[name].plain for name, item in fresh.items()):
            placed = self._usual
            knobs = {**placed.knobs, **{name: item.value for name, item in fresh.items()}}
        else:
            placed = self._place({**usual, **fresh})
            knobs = dict(placed.knobs)
        backend = knobs.get(LOGP_BACKEND)
        if backend not in self._bound:
            self._bound[backend] = self._operators(backend)
        operators, refused = self._bound[backend]
        builds = self._builds(own, operators, replaced=backend != self._usual.knobs.get(LOGP_BACKEND))
        config = SideConfig(
            role=self._role,
            scorer=self._pick.scorer,
            checkpoint=self._checkpoint(knobs.get(WEIGHTS)),
            knobs={**knobs, **builds.knobs},
            inapplicable={**placed.inapplicable, **builds.inapplicable},
            operators=operators,
        )
        unsupported = (*self._wrong_role, *placed.unsupported, *refused, *builds.unsupported)
        idle = {**placed.idle, **builds.idle}
        return Side(config=config, unsupported=unsupported, idle=idle, idle_alone=placed.idle_alone)

    def _checkpoint(self, copy: Json) -> Checkpoint:
        """The checkpoint, or the copy of it that ``rollout.weights`` names."""
        own = self._pick.checkpoint
        return own if copy is None else evolve(own, path=self._derived[copy], derived_from=own.path)

    def means(self, name: str) -> bool:
        """Whether the knob has a meaning on this side of the baseline."""
        if name not in self.placer.builds:
            return self.placer.means(name)
        bound = self.build({}).config.operators
        return any(names_knob(self._catalog.backend(of, choice.backend), name) for of, choice in bound.items())

    def _builds(self, own: Mapping[str, Json], operators: Mapping[str, OperatorChoice], *, replaced: bool) -> Chosen:
        """What the build-time knobs come to with these operators."""
        asked = {name: own.get(name, usual) for name, usual in self.placer.builds.items()}
        values = {name: value for name, value in asked.items() if value is not None}
        if not values:
            return _NO_BUILDS
        why = f"scorer {self._pick.scorer!r} lets no kernel take over: {self._kernelless()}"
        return choose(Asked(values=values, own=own, replaced=replaced, kernelless=why), operators, self._catalog)

    def _place(self, placed: Mapping[str, Placement]) -> _Placed:
        idle = {name: item.inapplicable for name, item in placed.items() if item.idle}
        return _Placed(
            knobs={name: item.value for name, item in placed.items() if item.carried},
            inapplicable={name: item.inapplicable for name, item in placed.items() if item.inapplicable},
            unsupported=tuple((name, item.unsupported) for name, item in placed.items() if item.unsupported),
            idle=idle,
            idle_alone=frozenset(name for name in idle if self.placer.knobs[name].targets.value == self._role.value),
        )

    def _value(self, name: str, value: Json) -> Json:
        """Where operators choose the logprob kernel, they say what ``logp.backend`` is on this side."""
        choice = self._choices.get(SELECTED_LOGPROB) if name == LOGP_BACKEND else None
        return value if choice is None else choice.backend

    def _operators(self, backend: Json) -> tuple[dict[str, OperatorChoice], Sentences]:
        """Operators of this side: those chosen in the experiment, and the one that ``logp.backend`` names."""
        found = {name: choice for name, choice in self._choices.items() if name != SELECTED_LOGPROB}
        refused: list[tuple[str, str]] = []
        chosen = self._choices.get(SELECTED_LOGPROB)
        if self.placer.means(LOGP_BACKEND):
            if backend is not None:
                options = {} if chosen is None else chosen.options
                found[SELECTED_LOGPROB] = OperatorChoice(backend=backend, options=options)
        elif chosen is not None:
            found[SELECTED_LOGPROB] = chosen
        if chosen is not None and not self._takes(SELECTED_LOGPROB):
            said = f"scorer {self._pick.scorer!r} takes no backend for {SELECTED_LOGPROB}: {self._kernelless()}"
            refused.append((SELECTED_LOGPROB, said))
        for name, choice in found.items():
            if self._role not in self._catalog.backend(name, choice.backend).roles:
                said = f"backend {choice.backend!r} of {name} does not serve the {self._role.value} side"
                refused.append((LOGP_BACKEND if name == SELECTED_LOGPROB else name, said))
        return found, tuple(refused)

    def _takes(self, operator: str) -> bool:
        """Whether a backend that ``operators`` names reaches the scorer."""
        return self.placer.means(LOGP_BACKEND) or operator in self._catalog.scorer(self._pick.scorer).operators

    def _kernelless(self) -> str:
        """Why the scorer takes no backend for the logprob kernel."""
        usual = self.placer.usual.get(LOGP_BACKEND)
        return (usual and usual.inapplicable) or "it does not know the operator"


def _wrong_role(role: Role, scorer: str, catalog: Catalog) -> Sentences:
    roles = catalog.scorer(scorer).roles
    if role in roles:
        return ()
    can = " and ".join(item.value for item in roles)
    return (("", f"scorer {scorer!r} plays {can}, not {role.value}"),)


def _choices(experiment: Experiment, role: Role) -> dict[str, OperatorChoice]:
    sides = {name: getattr(both, role.value) for name, both in experiment.operators.items()}
    return {name: choice for name, choice in sides.items() if choice is not None}

"""What one knob's value is on one side: requested, without a meaning, or beyond what the scorer can apply."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from xcfg.model.json import Json
from xcfg.model.knob import CORE_PREFIXES, Knob
from xcfg.model.scorer import MaterializerDescriptor, Role
from xcfg.planner.assignment import same
from xcfg.planner.build_knobs import chooses_build
from xcfg.planner.catalog import Catalog


@frozen(kw_only=True)
class Placement:
    """``carried``: ``value`` enters the side's configuration. The rest are sentences, empty where they do not apply.

    ``inapplicable`` says why the knob has no meaning here, ``unsupported`` why its value cannot be applied; ``idle``
    where the user gave a value to a knob without a meaning.
    """

    value: Json = None
    carried: bool = False
    inapplicable: str = ""
    unsupported: str = ""
    idle: bool = False

    @property
    def plain(self) -> bool:
        """Whether the value is requested and there is nothing to say."""
        return self.carried and not self.unsupported


class Placer:
    """Places the knobs of one role for one scorer.

    ``named`` are the knobs the baseline gives, ``replaced`` is True where the scorer takes the place of the baseline's
    own. ``knobs`` are those the role carries. ``usual`` holds the placement of each where a case sets nothing itself,
    but for those that choose a kernel's build: ``builds`` holds their values.
    """

    def __init__(
        self, role: Role, scorer: str, named: Collection[str], values: Mapping[str, Json], replaced: bool,
        catalog: Catalog,
    ) -> None:  # fmt: skip
        """``values`` is the baseline's value of every knob."""
        self.scorer = scorer
        self.knobs: dict[str, Knob] = {name: knob for name, knob in catalog.knobs().items() if knob.applies_to(role)}
        self.builds = {name: values.get(name) for name, knob in self.knobs.items() if chooses_build(knob)}
        self._how = {name: catalog.materializer(name, scorer) for name in self.knobs if name not in self.builds}
        self._named = named
        self._replaced = replaced
        self._placed: dict[tuple[str, type, Json], Placement] = {}
        self.usual = {name: self.place(name, values.get(name), own=False) for name in self._how}

    def place(self, name: str, value: Json, *, own: bool) -> Placement:
        """The placement of a value; ``own`` where the case sets it itself."""
        named = value is not None and (own or name in self._named)
        how = self._how[name]
        if how is None:
            return self._unknown(name, value, own) if named else Placement()
        if how.inapplicable:
            return Placement(inapplicable=how.inapplicable, idle=named)
        refused = value is not None and how.values and not any(same(value, item) for item in how.values)
        said = self._refusal(name, value, how, named) if refused else ""
        return Placement(value=value, carried=True, unsupported=said)

    def own(self, name: str, value: Json) -> Placement:
        """The placement of a value that a case sets itself; made once."""
        key = (name, type(value), value)
        if key not in self._placed:
            self._placed[key] = self.place(name, value, own=True)
        return self._placed[key]

    def means(self, name: str) -> bool:
        """Whether the knob has a meaning for the scorer in this role."""
        how = self._how.get(name)
        return how is not None and not how.inapplicable

    def _unknown(self, name: str, value: Json, own: bool) -> Placement:
        """A knob the user gave that the scorer does not know.

        What the baseline gives to its own engine (``vllm.seed``) has no meaning for an engine that takes its place.
        """
        engine = name.partition(".")[0]
        if self._replaced and not own and engine not in CORE_PREFIXES:
            said = f"{name} is a setting of {engine}, and scorer {self.scorer} takes its place here"
            return Placement(inapplicable=said)
        said = f"scorer {self.scorer!r} cannot apply {name}={_shown(value)}: it does not know the knob"
        return Placement(value=value, carried=True, unsupported=said)

    def _refusal(self, name: str, value: Json, how: MaterializerDescriptor, named: bool) -> str:
        can = ", ".join(_shown(item) for item in how.values)
        given = "" if named else " (its default)"
        reason = f" ({how.reason})" if how.reason else ""
        return f"scorer {self.scorer!r} cannot apply {name}={_shown(value)}{given} but only {can}{reason}"


def _shown(value: Json) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

"""Which cases of a plan are wanted: a named slice, and filters on coordinates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import field, frozen

from xcfg.errors import InvalidInput
from xcfg.model.codec import unknown
from xcfg.model.experiment import SliceSpec
from xcfg.model.json import Json, tupled
from xcfg.model.knob import Knob
from xcfg.planner.assignment import SIDE_DIMENSIONS, same
from xcfg.planner.check_names import BASELINE
from xcfg.planner.yaml_text import parse_value

_NAME = "name"


@frozen(kw_only=True)
class Filter:
    """Keeps cases whose coordinate ``key`` is one of ``values``, or with ``negated`` is none of them."""

    key: str
    values: tuple[Json, ...]
    negated: bool = False

    def accepts(self, value: Json) -> bool:
        """Whether a case with this coordinate stays."""
        return any(same(value, item) for item in self.values) is not self.negated


@frozen(kw_only=True)
class Selection:
    """Filters and a slice, both of which must accept a case; ``linked`` are the knobs of each linked axis.

    ``fixed`` are knobs that every case from the axes changes, so a slice does not count them.
    """

    filters: tuple[Filter, ...] = field(default=(), converter=tupled)
    slice: SliceSpec | None = None
    knobs: Mapping[str, Knob]
    linked: Mapping[str, Collection[str]]
    fixed: Collection[str] = ()

    def accepts(self, values: Mapping[str, Json], names: Sequence[str], shown: str, changed: Sequence[str]) -> bool:
        """Whether a case with these coordinates and names, shown as ``shown``, that changes ``changed`` is wanted."""
        if self.filters and not passes(self.filters, values, shown):
            return False
        if self.slice is None:
            return True
        counted = [name for name in changed if name not in self.fixed]
        axes = {name for axis in self.slice.axes for name in self.linked.get(axis, (axis,))}
        return in_slice(self.slice, names, counted, axes, self.knobs)


def parse_filters(texts: Sequence[str], knobs: Mapping[str, Knob]) -> tuple[Filter, ...]:
    """Read ``KNOB=VALUE``, ``KNOB!=VALUE`` and ``KNOB=[VALUE, VALUE]``.

    Besides knobs: ``name``, ``rollout.scorer``, ``training.scorer``, ``rollout.checkpoint``, ``training.checkpoint``.
    Raises InvalidInput on an unknown name or a value outside the knob's domain.
    """
    return tuple(_parse(text, knobs) for text in texts)


def _parse(text: str, knobs: Mapping[str, Knob]) -> Filter:
    where = f"--filter {text}"
    left, equals, right = text.partition("=")
    key, negated = left.rstrip("!").strip(), left.endswith("!")
    if not equals or not key:
        raise InvalidInput("a filter has the form KNOB=VALUE or KNOB!=VALUE", where=where)
    others = (_NAME, *SIDE_DIMENSIONS)
    if key not in knobs and key not in others:
        raise InvalidInput(unknown("knob", key, [*knobs, *others]), where=where)
    value = parse_value(right, where)
    values = value if isinstance(value, list) else [value]
    try:
        normal = tuple(knobs[key].domain.normalise(item) if key in knobs else str(item) for item in values)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{key}: {error}", where=where) from error
    return Filter(key=key, values=normal, negated=negated)


def accepted(filters: Sequence[Filter], values: Mapping[str, Json]) -> bool:
    """Whether no filter drops these values; filters on other names are not asked."""
    return all(item.accepts(values[item.key]) for item in filters if item.key in values)


def passes(filters: Sequence[Filter], values: Mapping[str, Json], name: str) -> bool:
    """Whether a case with these coordinates and this name stays."""
    return all(item.accepts(name if item.key == _NAME else values.get(item.key)) for item in filters)


def in_slice(
    spec: SliceSpec, names: Sequence[str], changed: Sequence[str], axes: Collection[str], knobs: Mapping[str, Knob]
) -> bool:
    """Whether a case that goes by ``names`` and changes the knobs ``changed`` belongs to a slice; ``axes`` are its own.

    By axes: everything it changes is among them. By source class: everything it changes is of one of the classes.
    """
    if not changed:
        return spec.baseline or BASELINE in spec.cases or any(name in spec.cases for name in names)
    if any(name in spec.cases for name in names):
        return True
    if all(name in axes for name in changed):
        return True
    classes = {knobs[name].source_class.value if name in knobs else "" for name in changed}
    return classes <= set(spec.source_classes)

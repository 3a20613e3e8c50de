"""Knobs: typed settings that an experiment may vary, described as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from xcfg.model.json import Json, freeze, tupled

CORE_PREFIXES = ("rollout", "training", "logp", "kernel", "sampling", "execution", "layout", "batch")
"""First parts of the knob names that core owns and every engine shares; other names belong to one plugin's engine."""


class SourceClass(StrEnum):
    """Where a difference that a knob makes comes from."""

    LOGICAL = "logical"
    ARITHMETIC = "arithmetic"
    REDUCTION = "reduction"
    REPRESENTATION = "representation"
    EXECUTION = "execution"


class Lifecycle(StrEnum):
    """When a value takes effect, hence what may be reused when it changes."""

    REQUEST = "request"
    ENGINE = "engine-construction"
    PROCESS = "process-start"
    BUILD = "build"


class Target(StrEnum):
    """Which side a knob belongs to."""

    ROLLOUT = "rollout"
    TRAINING = "training"
    BOTH = "both"
    KERNEL = "kernel"


class Kind(StrEnum):
    """Type of a knob's values."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STR = "str"


_TYPES = {Kind.BOOL: bool, Kind.INT: int, Kind.STR: str}


@frozen(kw_only=True)
class Domain:
    """The values a knob accepts.

    ``optional`` admits None: nothing is requested, the engine chooses, and what it chose is observed.
    ``aliases`` maps accepted spellings to the normal one (``bf16`` to ``bfloat16``).
    """

    kind: Kind
    values: tuple[Json, ...] = field(default=(), converter=tupled)
    minimum: float | None = None
    maximum: float | None = None
    optional: bool = False
    aliases: Mapping[str, Json] = field(factory=dict, converter=freeze)

    def normalise(self, value: Json) -> Json:
        """The normal form of ``value``. Raises ValueError with a sentence that says what is accepted."""
        if value is None:
            if self.optional:
                return None
            raise ValueError(f"a value is required: {self.describe()}")
        if isinstance(value, str) and value in self.aliases:
            value = self.aliases[value]
        if self.kind is Kind.FLOAT and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not self._typed(value):
            raise ValueError(f"{value!r} is not accepted: {self.describe()}")
        if self.values and value not in self.values:
            raise ValueError(f"{value!r} is not accepted: {self.describe()}")
        if isinstance(value, int | float) and not isinstance(value, bool) and not self._in_range(value):
            raise ValueError(f"{value!r} is out of range: {self.describe()}")
        return value

    def describe(self) -> str:
        """The accepted values in words."""
        if self.values:
            text = "one of " + ", ".join(str(item) for item in self.values)
        else:
            text = self.kind.value
            text += "" if self.minimum is None else f" >= {self.minimum:g}"
            text += "" if self.maximum is None else f" <= {self.maximum:g}"
        return text + (" or null (the engine's own choice)" if self.optional else "")

    def _typed(self, value: Json) -> bool:
        if self.kind is Kind.FLOAT:
            return isinstance(value, float) and math.isfinite(value)
        if self.kind is Kind.INT:
            return isinstance(value, int) and not isinstance(value, bool)
        return isinstance(value, _TYPES[self.kind])

    def _in_range(self, value: float) -> bool:
        return (self.minimum is None or value >= self.minimum) and (self.maximum is None or value <= self.maximum)


@frozen(kw_only=True)
class Knob:
    """One setting. Identity is ``name``; everything else describes it.

    ``semantic_scope``, ``intrusion`` and ``maintenance`` rank the cost of aligning it (0 is cheapest).
    ``aligned`` is the default aligned assignment, knob name to value over either or both sides; empty means
    "take the other side's value".
    """

    name: str
    summary: str
    source_class: SourceClass
    lifecycle: Lifecycle
    targets: Target
    domain: Domain
    default: Json = None
    semantic_scope: int = 0
    intrusion: int = 0
    maintenance: int = 0
    aligned: Mapping[str, Json] = field(factory=dict, converter=freeze)

    def applies_to(self, role: str) -> bool:
        """Whether a side of this role carries the knob."""
        return self.targets.value == role or self.targets in (Target.BOTH, Target.KERNEL)


@frozen(kw_only=True)
class Constraint:
    """Where every knob of ``when`` has one of its listed values, every knob of ``require`` must have one of its."""

    reason: str
    when: Mapping[str, tuple[Json, ...]] = field(factory=dict, converter=freeze)
    require: Mapping[str, tuple[Json, ...]] = field(factory=dict, converter=freeze)

    def violated(self, knobs: Mapping[str, Json]) -> bool:
        """True where the condition holds and the requirement does not. Knobs that are absent do not count."""
        if any(knobs.get(name) not in allowed for name, allowed in self.when.items()):
            return False
        return any(name in knobs and knobs[name] not in allowed for name, allowed in self.require.items())

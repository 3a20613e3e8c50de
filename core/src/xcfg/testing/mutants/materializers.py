"""Wrong materializers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcfg.model.capability import Capability, Supported, Unobservable
from xcfg.model.json import Json
from xcfg.plugin.protocols import Materializer, Settings


class MaterializerMutant:
    """A materializer that passes everything on to ``inner``; a subclass spoils one thing."""

    def __init__(self, inner: Materializer) -> None:
        """Wrap ``inner``."""
        self.inner = inner

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """As the correct one."""
        return self.inner.probe(knob, value, spec)

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """As the correct one."""
        return self.inner.apply(knob, value, settings)

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """As the correct one."""
        return self.inner.read_back(knob, live)


class SilentFallback(MaterializerMutant):
    """Applies nothing and reads back what was asked for."""

    _asked: dict[str, Json] = {}

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Remember the request and leave the draft alone."""
        self._asked[knob] = value
        return value

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """Repeat the request."""
        return self._asked[knob]


class VariableIgnored(MaterializerMutant):
    """Says that it applied the value and writes it nowhere; its read-back is honest."""

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Leave the draft alone."""
        return value


class ReadBackHardCoded(MaterializerMutant):
    """Observes the value it was written with, whatever is in force."""

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """One value for all."""
        return "float32"


class ReadBackStale(MaterializerMutant):
    """Observes once and repeats that for every engine that follows."""

    _seen: dict[str, Json | Unobservable] = {}

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """Look at the first engine alone."""
        if knob not in self._seen:
            self._seen[knob] = super().read_back(knob, live)
        return self._seen[knob]


class SectionMixedUp(MaterializerMutant):
    """A value of construction is written where request values are."""

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Write into both sections."""
        settings.request[knob] = value
        return super().apply(knob, value, settings)


class ValueReplaced(MaterializerMutant):
    """Says that it applied the engine's choice where a value was asked for."""

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Apply, then deny."""
        super().apply(knob, value, settings)
        return None


class NeverRefuses(MaterializerMutant):
    """Finds every value supported."""

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Yes."""
        return Supported()


MATERIALIZER_MUTANTS: tuple[type[MaterializerMutant], ...] = (
    SilentFallback,
    VariableIgnored,
    ReadBackHardCoded,
    ReadBackStale,
    SectionMixedUp,
    ValueReplaced,
    NeverRefuses,
)

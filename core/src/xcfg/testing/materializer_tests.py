"""The conformance checks of one materializer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import pytest

from xcfg.model.capability import Supported, Unobservable, Unsupported
from xcfg.model.ids import canonical
from xcfg.model.json import Json
from xcfg.model.knob import Knob, Lifecycle
from xcfg.model.scorer import MaterializerDescriptor
from xcfg.plugin.protocols import Materializer, Settings


class MaterializerTests:
    """Subclass, set the attributes and methods, and pytest checks the materializer.

    ``knob`` and ``descriptor``: the two descriptors. ``values``: requested values that can be applied here, with the
    value each must be observed as; give two or more, and ``{None: ...}`` for the engine's own choice where the domain
    has it (``None`` as the observation means: any value). ``unsupported``: values that ``probe`` must refuse.
    ``probe_spec``: the third argument of ``probe``. ``none_is_a_value``: None is observed of an engine that does
    without (no adapter, no cast), and is then no reading that failed.
    """

    knob: ClassVar[Knob]
    descriptor: ClassVar[MaterializerDescriptor]
    values: ClassVar[Mapping[Json, Json]]
    unsupported: ClassVar[Sequence[Json]] = ()
    probe_spec: ClassVar[Mapping[str, Json]] = {"role": "training", "checkpoint": "", "knobs": {}}
    none_is_a_value: ClassVar[bool] = False

    def make_materializer(self) -> Materializer:
        """A new materializer."""
        raise NotImplementedError

    def running(self, settings: Settings) -> AbstractContextManager[Any]:
        """A context in which a scorer opened with ``settings`` has scored once; yields its ``live`` handle."""
        raise NotImplementedError

    def witness(self, live: Any) -> Json:
        """A second way to see the value in force, that shares no code with ``read_back``; None where there is none."""
        return None

    def test_descriptor_fits_the_knob(self) -> None:
        """Same name, and only values of the knob's domain."""
        assert self.descriptor.knob == self.knob.name
        for value in (*self.descriptor.values, *self.values):
            assert self.knob.domain.normalise(value) == value
        if self.descriptor.values:
            assert self.descriptor.reason, "say why only these values can be applied"
            assert set(self.values) <= set(self.descriptor.values)

    def test_is_a_materializer(self) -> None:
        """All three methods are there."""
        assert isinstance(self.make_materializer(), Materializer)

    def test_probe_supports_the_values(self) -> None:
        """Probing needs no engine to be open."""
        for value in self.values:
            assert self.make_materializer().probe(self.knob.name, value, self.probe_spec) == Supported()

    def test_probe_refuses_with_a_reason(self) -> None:
        """The reason is shown to the user."""
        for value in self.unsupported:
            capability = self.make_materializer().probe(self.knob.name, value, self.probe_spec)
            assert isinstance(capability, Unsupported), f"{value!r} is supported"
            assert capability.reason.strip()

    def test_apply_returns_what_it_materialized(self) -> None:
        """The request itself, or None where the engine chooses."""
        for value in self.values:
            assert self.make_materializer().apply(self.knob.name, value, Settings()) == value

    def test_apply_writes_into_the_section_of_its_lifecycle(self) -> None:
        """A request-time value may not change what the engine is built with, nor the other way round."""
        for value in self.values:
            settings = Settings()
            self.make_materializer().apply(self.knob.name, value, settings)
            if self.descriptor.lifecycle is Lifecycle.REQUEST:
                assert not settings.env and not settings.engine
            else:
                assert not settings.request

    def test_read_back_sees_what_was_applied(self) -> None:
        """By a materializer that was never told the value, and by the witness."""
        self._needs_observation()
        for value, expected in self.values.items():
            with self.running(self._applied(value)) as live:
                observed = self.make_materializer().read_back(self.knob.name, live)
                witnessed = self.witness(live)
            assert not isinstance(observed, Unobservable), observed.reason
            assert observed is not None or self.none_is_a_value, "an engine always runs with some value"
            any_value = expected is None and not self.none_is_a_value
            assert any_value or _same(observed, expected), f"{value!r} is observed as {observed!r}"
            assert witnessed is None or _same(witnessed, observed), f"{observed!r} is observed, {witnessed!r} in force"

    def test_read_back_comes_from_the_live_object(self) -> None:
        """A materializer that has since been asked for another value must not report that one."""
        self._needs_observation()
        known = [value for value, expected in self.values.items() if expected is not None]
        if len(known) < 2:
            pytest.skip("needs two values with a known observation")
        first, other = known[:2]
        materializer = self.make_materializer()
        with self.running(self._applied(first, materializer)) as live:
            materializer.apply(self.knob.name, other, Settings())
            observed = materializer.read_back(self.knob.name, live)
        assert _same(observed, self.values[first]), f"{first!r} is in force, {observed!r} was read back"

    def _applied(self, value: Json, materializer: Materializer | None = None) -> Settings:
        settings = Settings()
        (materializer or self.make_materializer()).apply(self.knob.name, value, settings)
        return settings

    def _needs_observation(self) -> None:
        if not self.descriptor.observable:
            pytest.skip("declared as not observable")


def _same(observed: Json | Unobservable, expected: Json) -> bool:
    """As the host compares them: in JSON, where ``true`` is not 1, and 1.0 is."""
    return not isinstance(observed, Unobservable) and canonical(observed) == canonical(expected)

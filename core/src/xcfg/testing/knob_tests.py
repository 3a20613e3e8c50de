"""The conformance checks of a knob's descriptor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from xcfg.model.codec import dump_json, load_json, structure
from xcfg.model.json import Json
from xcfg.model.knob import Knob

_NAME = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_]*)+")


class KnobTests:
    """Subclass, set the attributes, and pytest checks the knob.

    ``knob``: the descriptor. ``accepted``: spellings a user may type, with the normal form of each. ``refused``:
    values outside the domain, at least one of another type.
    """

    knob: ClassVar[Knob]
    accepted: ClassVar[Mapping[Json, Json]]
    refused: ClassVar[Sequence[Json]]

    def test_name_is_dotted_lower_case(self) -> None:
        """A prefix that tells the owner, and a name."""
        assert _NAME.fullmatch(self.knob.name), self.knob.name

    def test_summary_says_something(self) -> None:
        """Lists print it."""
        assert self.knob.summary.strip()

    def test_default_is_in_the_domain_and_normal(self) -> None:
        """A default must not need a user's spelling."""
        assert self.knob.domain.normalise(self.knob.default) == self.knob.default

    def test_accepted_values_are_normalised(self) -> None:
        """One form a value, and that form is stable: ids are made from it."""
        assert self.accepted, "name at least one accepted value"
        for given, normal in self.accepted.items():
            found = self.knob.domain.normalise(given)
            assert (found, type(found)) == (normal, type(normal)), f"{given!r} became {found!r}"
            assert self.knob.domain.normalise(normal) == normal

    def test_every_alias_leads_into_the_domain(self) -> None:
        """An alias of a value that is itself refused helps nobody."""
        for alias, normal in self.knob.domain.aliases.items():
            assert self.knob.domain.normalise(alias) == normal == self.knob.domain.normalise(normal)

    def test_other_values_are_refused_with_a_sentence(self) -> None:
        """The sentence says what would be accepted."""
        assert self.refused, "name at least one refused value"
        for value in self.refused:
            with pytest.raises(ValueError) as caught:
                self.knob.domain.normalise(value)
            assert self.knob.domain.describe() in str(caught.value)

    def test_aligned_assignment_uses_normal_values(self) -> None:
        """The default aligned assignment is applied as it stands."""
        for name, value in self.knob.aligned.items():
            assert _NAME.fullmatch(name), name
            if name == self.knob.name:
                assert self.knob.domain.normalise(value) == value

    def test_costs_are_ranks(self) -> None:
        """0 is the cheapest."""
        assert min(self.knob.semantic_scope, self.knob.intrusion, self.knob.maintenance) >= 0

    def test_round_trips_through_json(self) -> None:
        """Another interpreter may be asked for the descriptor."""
        assert structure(load_json(dump_json(self.knob)), Knob) == self.knob

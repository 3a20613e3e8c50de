"""The conformance checks of an importer of recorded logprobs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import ClassVar

import numpy as np
import pytest

from xcfg.errors import ArtifactError
from xcfg.model.importer import ImporterDescriptor
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role
from xcfg.plugin.protocols import Importer
from xcfg.plugin.registry import load_registry
from xcfg.plugin.target import load_target
from xcfg.testing.recorded_rows import (
    Path,
    places_of,
    shortened,
    value_at,
    with_field,
    with_value,
    without_field,
)

_ARRAYS = ("response_ids", "logprobs", "mask", "prompt_ids", "position_ids")
_REST = ("id", "rank", "weight_versions", "semantics", "top_logprobs", "dtype", "assumed")
_NONSENSE = (7.5, {"a": 1})


class ImporterTests:
    """Subclass, set the attributes and methods, and pytest checks the importer.

    ``descriptor``: its descriptor; the distribution has to be installed. ``logprobs``: the name of the field that holds
    the logprobs of each role. ``required``: further fields that a row cannot do without. ``rows`` and ``records`` hold
    two sequences or more, in an order that no sorting would give, with a logprob that no other place of a role has.
    """

    descriptor: ClassVar[ImporterDescriptor]
    logprobs: ClassVar[Mapping[Role, str]]
    required: ClassVar[Sequence[str]]

    def rows(self, role: Role) -> Sequence[Row]:
        """The rows of one side's file, as the reader of such files gives them."""
        raise NotImplementedError

    def records(self, role: Role) -> Sequence[Record]:
        """What those rows say, written down by hand. Their ``place`` is not compared."""
        raise NotImplementedError

    def make_importer(self) -> Importer:
        """A new importer."""
        made: Importer = load_target(self.descriptor.target, self.descriptor.id)()
        return made

    def read(self, rows: Sequence[Row], role: Role) -> list[Record]:
        """The records of rows."""
        return list(self.make_importer().records(iter(rows), role))

    @pytest.fixture(params=list(Role))
    def role(self, request: pytest.FixtureRequest) -> Role:
        """The roles whose logprobs it reads."""
        if request.param not in self.logprobs:
            pytest.skip(f"the layout has no logprobs of the {request.param.value} side")
        role: Role = request.param
        return role

    def test_is_an_importer(self) -> None:
        """Both methods are there."""
        assert isinstance(self.make_importer(), Importer)

    def test_it_alone_claims_its_files(self, role: Role) -> None:
        """``--format auto`` takes the importer that alone claims a file, so one that claims too much takes others'."""
        registry = load_registry()
        assert self.descriptor.id in registry.importers(), "its distribution is not installed"
        importers: dict[str, Importer] = {}
        for id, found in registry.importers().items():
            importers[id] = load_target(found.target, registry.owner("importer", id))()
        importers[self.descriptor.id] = self.make_importer()
        fields = frozenset(self.rows(role)[0].fields)
        assert [id for id, importer in importers.items() if importer.claims(fields)] == [self.descriptor.id]
        for strange in (frozenset(), frozenset({"no", "fields", "of", "a", "framework"})):
            assert not self.make_importer().claims(strange), f"a file with the fields {sorted(strange)} is claimed"

    def test_reads_what_the_rows_say(self, role: Role) -> None:
        """Every record in the order of the rows, each field as it was written down, what was assumed said."""
        expected, found = self.records(role), self.read(self.rows(role), role)
        assert len(expected) > 1, "give two sequences or more"
        assert [record.id for record in found] == [record.id for record in expected]
        for record, wanted in zip(found, expected, strict=True):
            for name in _ARRAYS:
                _same(getattr(record, name), getattr(wanted, name), f"{name} of {wanted.id}")
            for name in _REST:
                assert getattr(record, name) == getattr(wanted, name), f"{name} of {wanted.id}"

    def test_arrays_have_the_types_of_a_record(self, role: Role) -> None:
        """int64 ids, float32 or float64 logprobs as stored, a mask of booleans."""
        for record in self.read(self.rows(role), role):
            assert record.response_ids.dtype == np.int64
            assert record.logprobs.dtype in (np.float32, np.float64)
            assert record.mask is None or record.mask.dtype == np.bool_
            assert record.prompt_ids is None or record.prompt_ids.dtype == np.int64

    def test_the_sides_are_told_apart(self) -> None:
        """Rollout and training in one file are two measurements, never one of them twice."""
        if len(self.logprobs) < len(Role):
            pytest.skip("the layout holds one side")
        first, second = (self.read(self.rows(role), role) for role in Role)
        names = {self.logprobs[role] for role in Role}
        assert len(names) == 1 or any(
            not np.array_equal(one.logprobs, other.logprobs) for one, other in zip(first, second, strict=True)
        ), "the rows of both roles hold other numbers, and the same ones were read"

    def test_rows_that_come_again_are_read_again(self, role: Role) -> None:
        """Duplicates are judged by the comparison, with their places, and never dropped or merged here."""
        rows = self.rows(role)
        once, twice = self.read(rows, role), self.read([*rows, *rows], role)
        assert len(twice) == 2 * len(once)
        for record, again in zip(twice, twice[len(once) :], strict=False):
            _same(record.logprobs, again.logprobs, "logprobs of the second time")

    def test_reads_one_row_at_a_time(self, role: Role) -> None:
        """Files may be larger than memory."""
        pulled: list[int] = []

        def endless() -> Iterator[Row]:
            while True:
                pulled.append(1)
                yield from self.rows(role)[:1]
                if len(pulled) > 3:
                    raise AssertionError("the whole file is read before the first record is given")

        assert next(iter(self.make_importer().records(endless(), role))).response_ids.size
        assert len(pulled) == 1

    @pytest.mark.parametrize("value", [math.nan, -math.inf, None], ids=["nan", "minus-infinity", "null"])
    def test_what_is_no_number_stays_none(self, role: Role, value: float | None) -> None:
        """NaN, null and minus infinity arrive as they are (null as NaN) or are refused; 0.0 would be certainty."""
        rows, at, path, record, token = self._one_logprob(role)
        if value is None and not isinstance(value_at(rows[at].fields, path[:-1]), list):
            pytest.skip("an array has no null")
        changed = [*rows[:at], with_value(rows[at], path, value), *rows[at + 1 :]]
        try:
            found = self.read(changed, role)[record].logprobs[token]
        except ArtifactError as error:
            self._placed(error, changed[at])
        else:
            expected = math.nan if value is None else value
            assert np.array_equal(found, expected, equal_nan=True), f"{value} was read as {found}"

    def test_lengths_are_not_repaired(self, role: Role) -> None:
        """A list of logprobs that is too short is refused, or arrives too short for the comparison to refuse."""
        rows, at, path, record, _ = self._one_logprob(role)
        changed = [*rows[:at], shortened(rows[at], path), *rows[at + 1 :]]
        try:
            found = self.read(changed, role)[record]
        except ArtifactError as error:
            self._placed(error, changed[at])
        else:
            assert len(found.logprobs) != len(found.response_ids), "a logprob was missing, and all was made to fit"
            _same(found.response_ids, self.records(role)[record].response_ids, "the tokens")

    def test_a_missing_field_is_refused(self, role: Role) -> None:
        """With the row's place, the field's name and what to do; a field that is null is refused too."""
        first, *others = self.rows(role)
        for name in (*self.required, self.logprobs[role]):
            row = without_field(first, name)
            error = self._refused([row, *others], role, f"a row without {name}")
            self._placed(error, row)
            assert name in str(error), f"the message does not name {name}: {error}"
            assert error.faults[0].hint.strip(), f"nothing says what to do without {name}: {error}"
            row = with_field(first, name, None)
            self._placed(self._refused([row, *others], role, f"{name}=null"), row)

    def test_nonsense_is_refused(self, role: Role) -> None:
        """A field of another type is an error of that row, whatever Python would make of it."""
        first, *others = self.rows(role)
        asked = [(name, value) for name in (*self.required, self.logprobs[role]) for value in _NONSENSE]
        for name, value in (*asked, (self.logprobs[role], "nonsense"), (self.logprobs[role], ["-0.5"])):
            row = with_field(first, name, value)
            self._placed(self._refused([row, *others], role, f"{name}={value!r}"), row)

    def test_says_where_each_record_stands(self, role: Role) -> None:
        """Later refusals name this place."""
        places = [row.place for row in self.rows(role)]
        for record in self.read(self.rows(role), role):
            assert any(record.place.startswith(place) for place in places), f"{record.place!r} is of no row"

    def test_leaves_the_rows_alone(self, role: Role) -> None:
        """Both sides may be read from one row."""
        rows = self.rows(role)
        before = deepcopy([dict(row.fields) for row in rows])
        self.read(rows, role)
        np.testing.assert_equal([dict(row.fields) for row in rows], before)

    def _one_logprob(self, role: Role) -> tuple[list[Row], int, Path, int, int]:
        """The rows; row and path of a logprob that stands nowhere else; its record and its token."""
        rows = list(self.rows(role))
        for number, record in enumerate(self.records(role)):
            for token, value in enumerate(record.logprobs):
                found = [
                    (at, path)
                    for at, row in enumerate(rows)
                    for path in places_of(row.fields, self.logprobs[role], float(value))
                ]
                if len(found) == 1:
                    return rows, *found[0], number, token
        raise AssertionError(f"give a logprob of the {role.value} side that stands in one place of its field only")

    def _refused(self, rows: Sequence[Row], role: Role, what: str) -> ArtifactError:
        try:
            found = self.read(rows, role)
        except ArtifactError as error:
            return error
        raise AssertionError(f"{what} is read as {len(found)} records and not refused")

    @staticmethod
    def _placed(error: ArtifactError, row: Row) -> None:
        assert all(fault.where.startswith(row.place) for fault in error.faults), f"the row is not named: {error}"


def _same(found: np.ndarray | None, expected: np.ndarray | None, what: str) -> None:
    """Bit for bit, NaN like NaN; None only where None is expected."""
    assert (found is None) == (expected is None), f"{what}: {found} instead of {expected}"
    if found is not None and expected is not None:
        np.testing.assert_array_equal(found, expected, err_msg=what)

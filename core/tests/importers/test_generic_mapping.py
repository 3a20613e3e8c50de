"""Columns under other names: where the value comes from, and what is said of a column that is not there."""

from __future__ import annotations

from xcfg.importers.generic import GenericImporter
from xcfg.importers.mapping import renamed
from xcfg.model.recorded import Row
from xcfg.model.scorer import Role

HELD = {"uid": 7, "out": {"tokens": [1, 2], "train": {"lp": [-1.0, -2.0]}}, "a.b": {"c.d": [1]}, "logprobs": "other"}


def test_fields_get_the_values_of_their_columns() -> None:
    columns = {"id": "uid", "response_ids": "out.tokens", "logprobs": "out.train.lp", "mask": "a.b.c.d"}
    (found,) = renamed([Row("f line 1", HELD)], columns)
    assert found.place == "f line 1"
    assert found.fields["mask"] == [1]
    assert found.fields["uid"] == 7
    (record,) = GenericImporter().records([Row("f line 1", {**found.fields, "mask": None})], Role.ROLLOUT)
    assert (record.id, record.response_ids.tolist(), record.logprobs.tolist()) == ("7", [1, 2], [-1.0, -2.0])


def test_two_fields_may_change_places() -> None:
    (found,) = renamed([Row("f", {"x": 1, "y": 2})], {"x": "y", "y": "x"})
    assert dict(found.fields) == {"x": 2, "y": 1}


def test_a_missing_column_is_named_with_the_nearest(refused) -> None:
    rows = [Row("f line 1", HELD), Row("f line 2", {"uid": 1})]
    fault = refused(lambda: renamed(rows[:1], {"logprobs": "out.train.logp"}))
    assert fault.message == "column 'out.train.logp' is missing"
    assert fault.hint.startswith(
        "did you mean 'out.train.lp'? the row has uid, out, out.tokens, out.train, out.train.lp"
    )
    fault = refused(lambda: renamed(rows, {"response_ids": "out.tokens"}))
    assert (fault.where, fault.hint) == ("f line 2", "the row has uid")

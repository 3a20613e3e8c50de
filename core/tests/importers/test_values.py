"""Field values as arrays: what is taken, as what, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.importers import values
from xcfg.model.recorded import Row


@pytest.mark.parametrize("held", [[5, 0, 7], (5, 0, 7), np.array([5, 0, 7], np.int32), np.array([5, 0, 7], np.uint8)])
def test_token_ids_are_int64(row: Row, held: object) -> None:
    ids = values.token_ids(held, row, "response_ids")
    assert ids.dtype == np.int64
    assert ids.tolist() == [5, 0, 7]


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ([1, -100], "response_ids[1] is -100, not a token id"),
        (np.array([3, 4, -1], np.int32), "response_ids[2] is -1, not a token id"),
        ([1, True], "response_ids[1] is bool True, not an integer"),
        ([1, 2.0], "response_ids[1] is float 2.0, not an integer"),
        ([1, None], "response_ids[1] is null, not an integer"),
        ([1, "2"], "response_ids[1] is the text '2', not an integer"),
        ([[1, 2]], "response_ids[0] is a list of 2, not an integer"),
        ([2**63], "response_ids holds an integer beyond the range of int64"),
        (np.array([2**63], np.uint64), "response_ids holds an integer beyond the range of int64"),
        (np.array([1.0]), "response_ids holds float64, not integers"),
        (np.array([True]), "response_ids holds bool, not integers"),
        (np.zeros((1, 2), int), "response_ids is an array of 2 dimensions [1, 2], not a flat list"),
        (7, "response_ids is int 7, not a list"),
        ("7", "response_ids is the text '7', not a list"),
        ({"a": 1}, "response_ids is dict {'a': 1}, not a list"),
    ],
)
def test_what_is_no_token_id(row: Row, refused, held: object, message: str) -> None:
    fault = refused(lambda: values.token_ids(held, row, "response_ids"))
    assert (fault.where, fault.message) == ("f.jsonl line 3", message)


def test_integers_of_either_sign(row: Row) -> None:
    assert values.integers([-1, 0], row, "position_ids").tolist() == [-1, 0]
    assert values.integers(np.array([2**63 - 1], np.uint64), row, "position_ids").tolist() == [2**63 - 1]


def test_logprobs_keep_what_is_stored(row: Row) -> None:
    """The dtype is at least float32, and no value moves: of -0.1 each format holds another number."""
    for dtype, wide in ((np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)):
        stored = np.array([-0.1, -np.inf, np.nan], dtype)
        read = values.logprobs(stored, row, "logprobs")
        assert read.dtype == wide
        np.testing.assert_array_equal(read.astype(np.float64), stored.astype(np.float64))
    assert values.logprobs(np.float16([-0.1]), row, "logprobs")[0] == np.float32(-0.0999755859375)


def test_logprobs_of_json_are_float64_and_null_is_nan(row: Row) -> None:
    read = values.logprobs([-0.1, None, 0, float("-inf")], row, "logprobs")
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read, [-0.1, np.nan, 0.0, -np.inf])
    assert values.logprobs([], row, "logprobs").shape == (0,)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ([-0.5, "nan"], "logprobs[1] is the text 'nan', not a number or null"),
        ([-0.5, False], "logprobs[1] is bool False, not a number or null"),
        ([-0.5, [1.0]], "logprobs[1] is a list of 1, not a number or null"),
        ([10**400], "logprobs holds an integer beyond the range of a float"),
        (np.array(["a"]), "logprobs holds <U1, not floating-point logprobs"),
        (np.array([1j]), "logprobs holds complex128, not floating-point logprobs"),
        (-0.5, "logprobs is float -0.5, not a list"),
    ],
)
def test_what_is_no_logprob(row: Row, refused, held: object, message: str) -> None:
    assert refused(lambda: values.logprobs(held, row, "logprobs")).message == message


@pytest.mark.parametrize(
    "held",
    [
        [True, False, True],
        [1, 0, 1],
        [1.0, 0, True],
        np.array([1, 0, 1], np.int8),
        np.array([1.0, 0.0, 1.0], np.float32),
        np.array([True, False, True]),
    ],
)
def test_masks(row: Row, held: object) -> None:
    mask = values.mask(held, row, "mask")
    assert mask.dtype == np.bool_
    assert mask.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ([1, 0, 2], "mask[2] is 2, not a boolean, 0 or 1"),
        ([1, 0.5], "mask[1] is 0.5, not a boolean, 0 or 1"),
        ([float("nan")], "mask[0] is nan, not a boolean, 0 or 1"),
        (np.array([1.0, np.nan]), "mask[1] is nan, not a boolean, 0 or 1"),
        (np.array([-1, 1]), "mask[0] is -1, not a boolean, 0 or 1"),
        ([1, None], "mask[1] is null, not a boolean, 0 or 1"),
        (["1"], "mask[0] is the text '1', not a boolean, 0 or 1"),
        (np.array(["1"]), "mask holds <U1, not booleans or 0 and 1"),
    ],
)
def test_what_is_no_mask(row: Row, refused, held: object, message: str) -> None:
    assert refused(lambda: values.mask(held, row, "mask")).message == message


def test_matrices(row: Row) -> None:
    assert values.matrix([[1, 2], [3, 4]], row, "m").dtype == np.int64
    assert values.matrix([[True], [False]], row, "m").dtype == np.bool_
    np.testing.assert_array_equal(values.matrix([[1, None], [0.5, 2]], row, "m"), [[1.0, np.nan], [0.5, 2.0]])
    assert values.matrix([], row, "m").shape == (0, 0)
    assert values.matrix([[], []], row, "m").shape == (2, 0)
    held = np.zeros((2, 3), np.float16)
    assert values.matrix(held, row, "m") is held


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ([[1], [2, 3]], "m has rows of 1 to 2 values, not a padded matrix"),
        ([[1], ["2"]], "m[1][0] is the text '2', not a number or null"),
        ([1, 2], "m[0] is int 1, not a list"),
        (np.zeros(3), "m is an array of float64 [3], not a matrix of numbers"),
        (np.array([["a"]]), "m is an array of <U1 [1, 1], not a matrix of numbers"),
        (5, "m is int 5, not a matrix of numbers"),
        ([[2**64]], "m holds an integer beyond the range of int64"),
    ],
)
def test_what_is_no_matrix(row: Row, refused, held: object, message: str) -> None:
    assert refused(lambda: values.matrix(held, row, "m")).message == message


def test_scalars(row: Row) -> None:
    assert values.number(1, row, "n") == 1.0
    assert values.number(np.float32(0.5), row, "n") == 0.5
    assert np.isnan(values.number(float("nan"), row, "n"))
    assert values.integer(np.array(4), row, "n") == 4
    assert values.text(np.array("a"), row, "n") == "a"


@pytest.mark.parametrize(
    ("read", "held", "message"),
    [
        (values.number, True, "n is bool True, not a number"),
        (values.number, "1", "n is the text '1', not a number"),
        (values.number, None, "n is null, not a number"),
        (values.number, 10**400, "n is an integer beyond the range of a float"),
        (values.integer, 3.0, "n is float 3.0, not an integer"),
        (values.integer, np.bool_(True), "n is bool True, not an integer"),
        (values.integer, [3], "n is a list of 1, not an integer"),
        (values.text, 3, "n is int 3, not text"),
        (values.text, "a\ud800", "n is the text 'a\\ud800', which holds half a character (a lone surrogate)"),
    ],
)
def test_what_is_no_scalar_of_its_kind(row: Row, refused, read, held: object, message: str) -> None:
    assert refused(lambda: read(held, row, "n")).message == message


def test_a_missing_field_is_named_with_the_nearest(row: Row, refused) -> None:
    fault = refused(lambda: values.field(row, "logprobs"))
    assert fault.message == "field 'logprobs' is missing"
    assert fault.hint == "did you mean 'logprob'?"
    assert refused(lambda: values.field(row, "mask")).hint == "the row has id, logprob, nothing"
    assert refused(lambda: values.field(row, "nothing")).message == "field 'nothing' is null"
    assert values.field(row, "id") == "a"

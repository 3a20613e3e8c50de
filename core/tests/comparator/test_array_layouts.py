"""Arrays that a caller hands over: every layout means the same tokens, and what does not fit is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.comparator.layout import array_pairs
from xcfg.errors import InvalidInput

ROWS = [[-1.0, -2.0, -3.0], [-4.0], [-5.0, -6.0]]
OTHER = [[-1.5, -2.5, -3.5], [-4.5], [-5.5, -6.5]]


class Exported:
    """An object that offers its values through DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Unreadable:
    """An object whose values numpy cannot have."""

    def __init__(self, error):
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error


def pairs(rollout, training, *, mask=None, lengths=None, token_ids=None, sequence_ids=None, rank=0):
    return array_pairs(rollout, training, mask, lengths, token_ids, sequence_ids, rank)


def refusal(*args, **kwargs):
    """The one fault of a call that is refused."""
    with pytest.raises(InvalidInput) as caught:
        pairs(*args, **kwargs)
    (fault,) = caught.value.faults
    return fault


def listed(rows, dtype=np.float32):
    return [np.array(row, dtype=dtype) for row in rows]


def flat(rows, dtype=np.float32):
    return np.array([value for row in rows for value in row], dtype=dtype)


@pytest.mark.parametrize("collect", [list, tuple])
def test_a_list_of_arrays_and_ragged_values_with_lengths_are_the_same(collect):
    given = pairs(collect(listed(ROWS)), collect(listed(OTHER)))
    ragged = pairs(flat(ROWS), flat(OTHER), lengths=[3, 1, 2])
    for found in (given, ragged):
        assert found.rollout.tolist() == [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]
        assert found.train.tolist() == [-1.5, -2.5, -3.5, -4.5, -5.5, -6.5]
        assert found.lengths.tolist() == [3, 1, 2]
        assert found.mask is found.tokens is found.names is None
        assert found.rank == 0


def test_a_padded_array_has_rows_of_one_length():
    found = pairs(np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32) * -1, rank=5)
    assert found.lengths.tolist() == [3, 3]
    assert (found.rollout.tolist(), found.train.tolist(), found.rank) == ([0.0] * 6, [-1.0] * 6, 5)


def test_one_flat_array_or_list_of_numbers_is_one_sequence():
    for rollout in (flat(ROWS, np.float64), flat(ROWS, np.float64).tolist()):
        found = pairs(rollout, flat(OTHER, np.float64))
        assert (found.lengths.tolist(), found.rollout.dtype) == ([6], np.float64)
    nothing = pairs([], [])
    assert (nothing.lengths.tolist(), nothing.lengths.dtype) == ([], np.int64)


def test_arrays_are_viewed_and_not_copied():
    rollout, training = flat(ROWS), flat(OTHER)
    rollout.flags.writeable = False  # DLPack would refuse or copy a read-only array: numpy's own are taken as they are
    found = pairs(rollout, Exported(training), lengths=[3, 1, 2])
    assert np.shares_memory(found.rollout, rollout)
    assert np.shares_memory(found.train, training)
    tokens = np.arange(6)
    assert np.shares_memory(pairs(rollout, training, token_ids=tokens).tokens, tokens)
    padded = np.zeros((2, 3), np.float32)
    assert np.shares_memory(pairs(padded, padded - 1).rollout, padded)


def test_strings_are_no_logprobs():
    fault = refusal(np.array(["-1.0"]), np.array(["-1.0"]))
    assert (fault.where, fault.message) == ("rollout", "logprobs are float16, float32 or float64, not <U4")


def test_a_masked_array_is_sent_to_the_mask():
    fault = refusal(np.ma.array([-1.0, -2.0], mask=[True, False]), [-1.0, -2.0])
    assert (fault.where, fault.message) == ("rollout", "a masked array is not taken")
    assert fault.hint == "give its data, and what is active as mask"


def test_memory_is_shared_where_a_row_is_compared_with_itself():
    """Two lists are held against each other row by row, and one array against every row of a list."""
    first, second = np.array([-1.0, -2.0]), np.array([-3.0, -4.0])
    assert pairs([first, second], [first.copy(), second[:]]).same_memory
    assert not pairs([first, second], [second, first]).same_memory
    whole = np.array([[-1.0, -2.0], [-3.0, -4.0]])
    assert pairs(whole, [first, whole[1]]).same_memory
    assert not pairs(whole, [first, second]).same_memory


@pytest.mark.parametrize("error", [TypeError("no"), ValueError("no"), RuntimeError("no"), BufferError("no")])
def test_what_numpy_cannot_view_is_refused_with_a_way_out(error):
    fault = refusal(Unreadable(error), [-1.0])
    assert (fault.where, fault.message) == ("rollout", "numpy cannot view it: no")
    assert fault.hint == "xcfg_torch.compare_logprobs takes tensors of any device and dtype"
    assert refusal([-1.0], Unreadable(error)).where == "training"
    assert refusal([np.zeros(1)], [Unreadable(error)]).where == "training"


def test_shapes_that_are_no_layout_are_named():
    cube = np.zeros((1, 2, 3), np.float32)
    fault = refusal(cube, cube)
    assert (fault.where, fault.message) == ("rollout", "shape (1, 2, 3) is neither (N,) nor (B, L)")
    assert "shape ()" in refusal(np.float32(1.0), [1.0]).message
    fault = refusal([np.zeros(2), np.zeros((1, 2))], [np.zeros(2)] * 2)
    message = "a list of arrays of shape (L,) is needed, one has shape (1, 2)"
    assert (fault.where, fault.message) == ("rollout", message)


def test_both_sides_have_the_same_rows():
    fault = refusal(listed(ROWS), listed(OTHER[:2]))
    message = "training has 2 rows of 4 tokens in all, rollout 3 rows of 6 tokens in all"
    assert (fault.where, fault.message) == ("training", message)
    assert refusal(np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)).where == "training"


@pytest.mark.parametrize("name", ["mask", "token_ids"])
def test_masks_and_token_ids_have_the_layout_of_the_logprobs(name):
    fault = refusal(listed(ROWS), listed(OTHER), **{name: [np.ones(3, int), np.ones(2, int), np.ones(1, int)]})
    assert fault.where == name
    assert fault.message == f"{name} has 3 rows of 6 tokens in all, the logprobs 3 rows of 6 tokens in all"
    cube = np.ones((1, 1, 1), int)
    assert refusal(listed(ROWS), listed(OTHER), **{name: cube}).where == name


def test_a_mask_is_boolean_or_zeros_and_ones():
    on = [[True, False, True], [True], [False, True]]
    for dtype in (bool, np.int64, np.float32):
        found = pairs(listed(ROWS), listed(OTHER), mask=listed(on, dtype))
        assert (found.mask.dtype, found.mask.tolist()) == (np.bool_, [True, False, True, True, False, True])
    own = np.array([True, False, True, True, False, True])
    assert np.shares_memory(pairs(flat(ROWS), flat(OTHER), mask=own).mask, own)
    fault = refusal(flat(ROWS), flat(OTHER), mask=[0, 1, 2, 1, 0, 1])
    assert (fault.where, fault.message) == ("mask", "a mask holds true and false, or 1 and 0")


def test_token_ids_are_integers():
    found = pairs(listed(ROWS), listed(OTHER), token_ids=listed([[7, 8, 9], [1], [2, 3]], np.uint8))
    assert (found.tokens.dtype, found.tokens.tolist()) == (np.int64, [7, 8, 9, 1, 2, 3])
    fault = refusal(flat(ROWS), flat(OTHER), token_ids=np.ones(6))
    assert (fault.where, fault.message) == ("token_ids", "integers are needed, not float64")


@pytest.mark.parametrize("lengths", [[3, 1, 1], [7, -1], [[3, 3]], [3, 1, 3]])
def test_lengths_that_do_not_split_the_values_are_refused(lengths):
    fault = refusal(flat(ROWS), flat(OTHER), lengths=lengths)
    total = int(np.sum(lengths))
    message = f"lengths of sum {total} do not split logprobs of 1 rows of 6 tokens in all"
    assert (fault.where, fault.message) == ("lengths", message)
    assert fault.hint == "lengths (B,) belong to ragged logprobs (N,)"


def test_lengths_belong_to_ragged_values_and_are_integers():
    assert refusal(listed(ROWS), listed(OTHER), lengths=[3, 1, 2]).where == "lengths"
    fault = refusal(flat(ROWS), flat(OTHER), lengths=[3.0, 1.0, 2.0])
    assert (fault.where, fault.message) == ("lengths", "integers are needed, not float64")
    assert refusal(flat(ROWS), flat(OTHER), lengths=Unreadable(TypeError("no"))).where == "lengths"
    assert pairs(flat(ROWS), flat(OTHER), lengths=[0, 6, 0]).lengths.tolist() == [0, 6, 0]


def test_half_precision_is_widened_in_the_blocks_and_wider_kinds_are_kept():
    for given, kept in ((np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)):
        (block,) = pairs(flat(ROWS, given), flat(OTHER, given)).blocks()
        assert (block.rollout.dtype, block.train.dtype) == (kept, kept)
        assert block.train.tolist() == flat(OTHER, np.float64).tolist()
    fault = refusal(flat(ROWS), flat(OTHER, np.int32))
    assert (fault.where, fault.message) == ("training", "logprobs are float16, float32 or float64, not int32")


def test_sequence_ids_are_distinct_and_one_a_row():
    assert pairs(listed(ROWS), listed(OTHER), sequence_ids=["a", "b", "c"]).names == ("a", "b", "c")
    for names in (["a", "b"], ["a", "b", "b"], ["a", "b", "c", "d"]):
        fault = refusal(listed(ROWS), listed(OTHER), sequence_ids=names)
        message = f"3 sequences need as many distinct sequence_ids, got {len(names)}"
        assert (fault.where, fault.message) == ("sequence_ids", message)
        repeats = "'b' repeats: the samples of one prompt need an id each"
        assert fault.hint == (repeats if names.count("b") == 2 else "")

"""What does not fit is refused in a sentence that names the argument, before anything is compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xcfg import compare_logprobs
from xcfg.errors import InvalidInput

ROLLOUT = -np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
TRAINING = ROLLOUT - np.float32(0.25)
FLAT = {"rollout": ROLLOUT.ravel(), "training": TRAINING.ravel()}

REFUSED = [
    *(("rollout", {"rollout": value}, "shape ()") for value in (None, -1.0, "text", b"bytes", {}, object())),
    ("rollout", {"rollout": ROLLOUT[None]}, "shape (1, 2, 3) is neither (N,) nor (B, L)"),
    ("rollout", {"rollout": [ROLLOUT, ROLLOUT]}, "one has shape (2, 3)"),
    ("rollout", {"rollout": [np.float32(-1), ROLLOUT[0]]}, "numpy cannot view it"),
    ("rollout", {"rollout": [[-1.0, -2.0], -3.0]}, "one has shape ()"),
    ("rollout", {"rollout": ROLLOUT.astype(np.int64)}, "not int64"),
    ("rollout", {"rollout": ROLLOUT.astype(complex)}, "not complex128"),
    ("rollout", {"rollout": ROLLOUT.astype(str)}, "not <U32"),
    ("rollout", {"rollout": ROLLOUT.astype(object)}, "not object"),
    ("rollout", {"rollout": ROLLOUT > 0}, "not bool"),
    ("rollout", {"rollout": [ROLLOUT[0], ROLLOUT[1].astype(int)]}, "not int64"),
    ("rollout", {"rollout": np.ma.array(ROLLOUT, mask=ROLLOUT < -2)}, "masked array"),
    ("training", {"training": TRAINING[:, :2]}, "training has 2 rows of 4 tokens in all, rollout 2 rows of 6"),
    ("training", {"training": TRAINING.T}, "3 rows of 6 tokens in all, rollout 2 rows of 6"),
    ("training", {"training": TRAINING.ravel()}, "1 rows of 6 tokens in all, rollout 2 rows of 6"),
    ("training", {"training": TRAINING.astype(int)}, "not int64"),
    ("mask", {"mask": np.ones((3, 2))}, "mask has 3 rows of 6 tokens in all, the logprobs 2 rows of 6"),
    ("mask", {"mask": np.ones(6)}, "mask has 1 rows of 6 tokens in all"),
    ("mask", {"mask": np.full((2, 3), 2)}, "true and false, or 1 and 0"),
    ("mask", {"mask": np.full((2, 3), 0.5)}, "true and false, or 1 and 0"),
    ("mask", {"mask": np.full((2, 3), np.nan)}, "true and false, or 1 and 0"),
    ("mask", {"mask": np.full((2, 3), "on")}, "true and false, or 1 and 0"),
    ("token_ids", {"token_ids": np.ones((2, 3))}, "integers are needed, not float64"),
    ("token_ids", {"token_ids": np.ones((2, 3), bool)}, "integers are needed, not bool"),
    ("token_ids", {"token_ids": np.ones((2, 4), int)}, "token_ids has 2 rows of 8 tokens in all"),
    ("lengths", {"lengths": [3, 3]}, "do not split logprobs of 2 rows of 6 tokens"),
    ("lengths", {**FLAT, "lengths": [3, 4]}, "lengths of sum 7"),
    ("lengths", {**FLAT, "lengths": [7, -1]}, "lengths of sum 6"),
    ("lengths", {**FLAT, "lengths": 6}, "lengths of sum 6"),
    ("lengths", {**FLAT, "lengths": [3.0, 3.0]}, "integers are needed, not float64"),
    ("lengths", {**FLAT, "lengths": "33"}, "integers are needed"),
    ("sequence_ids", {"sequence_ids": ["a"]}, "2 sequences need as many distinct sequence_ids, got 1"),
    ("sequence_ids", {"sequence_ids": ["a", "a"]}, "'a' repeats: the samples of one prompt need an id each"),
    ("sequence_ids", {"sequence_ids": [1, 2]}, "sequence ids are texts, one is 1"),
    ("sequence_ids", {"sequence_ids": "ab"}, "a list of texts is needed, not 'ab'"),
    ("sequence_ids", {"sequence_ids": 7}, "a list of texts is needed, not 7"),
    ("dtype", {"dtype": np.float32}, "the name of a dtype is needed"),
    ("dtype", {"dtype": None}, "the name of a dtype is needed, not None"),
    ("contract", {"contract": 7}, "a path or a ToleranceContract is needed, not 7"),
    ("absent.json", {"contract": Path("absent.json")}, "the tolerance contract cannot be read"),
    ("clip_range", {"clip_range": (0.2, 0.2)}, "the bounds of the ratio, as (0.8, 1.2), not their distances from 1"),
    *(("clip_range", {"clip_range": pair}, "must hold 1") for pair in ((1.2, 0.8), (-1.0, 1.2), (0, np.nan))),
    *(("clip_range", {"clip_range": value}, "two numbers are needed") for value in (0.2, (1,), (0, 1, 2), "ab", ())),
]


@pytest.mark.parametrize(
    ("where", "options", "said"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_refused_by_name(where, options, said):
    with pytest.raises(InvalidInput) as caught:
        compare_logprobs(**{"rollout": ROLLOUT, "training": TRAINING, "dtype": "bf16", **options})
    (fault,) = caught.value.faults
    assert fault.where == where
    assert said in str(fault)


def test_ragged_rows_of_numbers_without_a_list_of_arrays_are_a_list_of_arrays():
    found = compare_logprobs([[-1.0], [-2.0, -3.0]], [[-1.0], [-2.0, -3.0]], dtype="bf16")
    assert found.active_tokens == 3


def test_a_rank_is_an_integer_of_any_kind():
    assert compare_logprobs(ROLLOUT, TRAINING, dtype="bf16", rank=np.uint8(3)).worst.train_rank == 3
    with pytest.raises(TypeError, match="integer"):
        compare_logprobs(ROLLOUT, TRAINING, dtype="bf16", rank="3")


@pytest.mark.parametrize("missing", ["rollout", "training", "dtype"])
def test_both_sides_and_the_dtype_are_required(missing):
    options = {"rollout": ROLLOUT, "training": TRAINING, "dtype": "bf16"}
    del options[missing]
    with pytest.raises(TypeError, match=missing):
        compare_logprobs(**options)


def test_a_tensor_that_numpy_cannot_view_is_sent_to_the_torch_plugin():
    torch = pytest.importorskip("torch")
    for tensor in (torch.zeros(2, 3, dtype=torch.bfloat16), torch.zeros(2, 3, requires_grad=True)):
        with pytest.raises(InvalidInput, match=r"^rollout: .*xcfg_torch.compare_logprobs takes tensors of any device"):
            compare_logprobs(tensor, TRAINING, dtype="bf16")


def test_a_tensor_that_numpy_can_view_is_taken_by_dlpack():
    torch = pytest.importorskip("torch")
    found = compare_logprobs(torch.from_numpy(ROLLOUT.copy()), torch.from_numpy(TRAINING.copy()), dtype="bf16")
    assert found == compare_logprobs(ROLLOUT, TRAINING, dtype="bf16")

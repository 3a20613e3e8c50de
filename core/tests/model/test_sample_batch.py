"""Token batches and flat samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcfg.model.sample import ARRAYS, Samples, TokenBatch, concatenate, offsets, ragged_index


def samples_of(rows):
    """Samples of (sequence, rank, prompt, response) rows; token and logprob values tell where they came from."""
    inputs, positions, logprobs, masks = [], [], [], []
    for sequence, rank, prompt, response in rows:
        total = prompt + response
        inputs += [1000 * sequence + 100 * rank + place for place in range(total)]
        positions += range(total)
        logprobs += [-(sequence + rank / 8 + place / 64) for place in range(response)]
        masks += [(sequence + place) % 2 == 0 for place in range(response)]
    columns = list(zip(*rows, strict=True)) if rows else [[], [], [], []]
    return Samples(
        sequence=columns[0],
        rank=columns[1],
        prompt_length=columns[2],
        response_length=columns[3],
        input_ids=inputs,
        position_ids=positions,
        action_mask=np.array(masks, dtype=bool),
        logprobs=np.array(logprobs, dtype=np.float32),
    )


def as_rows(samples):
    """Plain rows through the slices of the value."""
    return [
        (
            int(samples.sequence[row]),
            int(samples.rank[row]),
            samples.input_ids[samples.input_slice(row)].tolist(),
            samples.position_ids[samples.input_slice(row)].tolist(),
            samples.action_mask[samples.response_slice(row)].tolist(),
            samples.logprobs[samples.response_slice(row)].tolist(),
        )
        for row in range(samples.rows)
    ]


row = st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 4), st.integers(0, 4))


@given(st.lists(st.lists(row, max_size=5), max_size=4))
def test_concatenate_is_a_stable_sort_of_whole_rows(parts):
    joined = concatenate([samples_of(rows) for rows in parts])
    expected = [item for rows in parts for item in as_rows(samples_of(rows))]
    assert as_rows(joined) == sorted(expected, key=lambda item: item[:2])
    assert {name: getattr(joined, name).dtype.name for name in ARRAYS}["logprobs"] == "float32"


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6)), max_size=8))
def test_ragged_index_is_the_loop_it_replaces(rows):
    starts = np.array([start for start, _ in rows], dtype=np.int64)
    lengths = np.array([length for _, length in rows], dtype=np.int64)
    expected = [start + step for start, length in rows for step in range(length)]
    assert ragged_index(starts, lengths).tolist() == expected
    assert offsets(lengths).tolist() == [0, *np.cumsum(lengths).tolist()]


def test_offsets_are_computed_once():
    samples = samples_of([(0, 0, 2, 3), (1, 0, 1, 2)])
    assert samples.input_offsets is samples.input_offsets
    assert samples.input_offsets.tolist() == [0, 5, 8]
    assert samples.response_slice(1) == slice(3, 5)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("input_ids", [0.5] * 5, "integers are required"),
        ("prompt_length", [-2], "negative"),
        ("prompt_length", [2, 2], "differ in length"),
        ("input_ids", [1], "must hold 5 tokens"),
        ("logprobs", np.zeros(2, dtype=np.float32), "must hold 3 tokens"),
        ("logprobs", np.zeros(3), "float32"),
        ("logprobs", np.zeros((3, 1), dtype=np.float32), "flat"),
        ("action_mask", np.ones(3, dtype=np.int64), "bool"),
    ],
)
def test_samples_of_the_wrong_shape_are_refused(name, value, message):
    arrays = samples_of([(0, 0, 2, 3)]).arrays()
    with pytest.raises(ValueError, match=message):
        Samples(**{**arrays, name: value})


def test_ids_of_samples_are_copied_and_read_only():
    source = np.arange(5)
    samples = Samples(**{**samples_of([(0, 0, 2, 3)]).arrays(), "input_ids": source})
    source[0] = 99
    assert samples.input_ids[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        samples.input_ids[0] = 1


def make_batch(**changes):
    values = {
        "ids": ["a", "b"],
        "prompts": [[1], [1, 2]],
        "responses": [[3, 4], [5]],
        "action_masks": [[True, False], [True]],
    }
    return TokenBatch(**{**values, **changes})


def test_a_token_batch_counts_active_tokens_and_its_digest_covers_what_identifies_it():
    batch = make_batch()
    assert batch.active_tokens == 2
    assert batch.digest() == make_batch(sampled_logprobs=[[-1.0, -2.0], [-3.0]]).digest()
    others = [
        make_batch(ids=["a", "c"]),
        make_batch(prompts=[[1], [1, 3]]),
        make_batch(responses=[[3, 9], [5]]),
        make_batch(action_masks=[[True, True], [True]]),
        make_batch(weight_version="2"),
    ]
    assert len({batch.digest(), *(other.digest() for other in others)}) == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids": ["a", "a"]}, "repeat"),
        ({"ids": ["a"]}, "one prompt"),
        ({"action_masks": [[True], [True]]}, "sequence a: 1 mask"),
        ({"sampled_logprobs": [[-1.0], [-3.0]]}, "sampled logprob"),
        ({"sampled_logprobs": [[-1.0, -2.0]]}, "sampled logprob"),
    ],
)
def test_a_ragged_token_batch_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make_batch(**changes)

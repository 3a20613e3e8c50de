"""Several defects at once: the most basic is the status, the others are told after it."""

from __future__ import annotations

import itertools
import math

import pytest
from attrs import evolve

from xcfg.comparator.recorded.compare import Terms, compare_recorded
from xcfg.model.status import INVALID_PRECEDENCE, Status

SPOILT = {
    Status.INVALID_ARTIFACT: lambda item: evolve(item, id="a"),  # a second 'a': found as late as the others
    Status.INVALID_IDENTITY: lambda item: evolve(item, response_ids=item.response_ids + 1),
    Status.NON_FINITE: lambda item: evolve(item, logprobs=item.logprobs * math.nan),
}


def test_the_order_is_that_of_the_measurement_contract():
    assert [status for status in INVALID_PRECEDENCE if status is not Status.INVALID_PROVENANCE] == [
        Status.INVALID_ARTIFACT,
        Status.INVALID_IDENTITY,
        Status.NON_FINITE,
        Status.ZERO_ACTIVE_TOKENS,
        Status.NO_THRESHOLD,
    ]


@pytest.mark.parametrize("dtype", ["float32", ""])
@pytest.mark.parametrize("chosen", [pair for n in (1, 2, 3) for pair in itertools.combinations(SPOILT, n)])
def test_the_first_of_several_defects(judge, record, chosen, dtype):
    training = [record(id, dtype=dtype) for id in "abcd"]
    for place, status in enumerate(chosen, start=1):
        training[place] = SPOILT[status](training[place])
    result = judge([record(id, dtype=dtype) for id in "abcd"], training)
    assert result.status is chosen[0]
    for status in chosen[1:]:
        assert f"also {status.value}: " in result.reason


def test_nothing_active_comes_after_identity_and_before_no_threshold(judge, record):
    masked = [record("a", mask=[0, 0, 0], dtype="")]
    assert judge(masked, masked).status is Status.ZERO_ACTIVE_TOKENS
    other = [record("a", mask=[0, 0, 0], ids=[1, 2, 3], dtype="")]
    found = judge(masked, other)
    assert (found.status, "zero_active" in found.reason) == (Status.INVALID_IDENTITY, False)  # nothing was paired
    strict = judge(masked, masked, strict=True)
    assert strict.status is Status.INVALID_IDENTITY
    assert "also zero_active_tokens: " in strict.reason


def test_a_positive_logprob_outweighs_a_nan_in_the_same_record(judge, record):
    result = judge([record(logprobs=[math.nan, 0.5, -1.0])], [record()])
    assert result.status is Status.INVALID_ARTIFACT
    assert "first 0.5 at position 1" in result.reason
    assert "also non_finite: rollout sequence 'a' (a line): 1 of 3 active logprobs are not finite" in result.reason


DOUBTFUL = {
    "two records": (lambda item: [item, item], "rollout has sequence 'a' twice: line and line"),
    "one side": (lambda item: [], "sequence_ids: 'a' (line) is only on the training side"),
    "tokens": (
        lambda item: [evolve(item, response_ids=item.response_ids + 1)],
        "response_ids differs in sequence 'a' at index 0: rollout (line) 11, training (line) 10",
    ),
    "weights": (
        lambda item: [evolve(item, weight_versions=("5", "5", "6"))],
        "weight_version changes inside sequence 'a' of rollout (line) at position 2: '5' before, '6' from there",
    ),
    "semantics": (
        lambda item: [evolve(item, semantics={"top_p": 0.5})],
        "top_p differs: rollout 0.5, training 1.0 (its default, not stated); sequence 'a' (line, line)",
    ),
    "length": (
        lambda item: [evolve(item, logprobs=item.logprobs[:1])],
        "rollout sequence 'a' (line): logprobs has 1 values, response_ids 3",
    ),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_of_several_the_lowest_id_is_named_and_nothing_of_them_is_paired(contract, record, tmp_path, name):
    """An id with an apostrophe is shown between double quotes, which sort before single ones."""
    spoil, said = DOUBTFUL[name]
    training = [record(id, place="line") for id in ("b'", "a", "c")]
    rollout = [item for one in training[:2] for item in spoil(one)] + training[2:]
    found = compare_recorded(rollout, training, Terms(contract=contract), tmp_path)
    assert found.comparison.reason == f"{said} (2 such in all)"
    if name not in ("length", "two records"):  # of which the first stops before pairing, and the second is paired
        assert found.comparison.active_tokens == 3

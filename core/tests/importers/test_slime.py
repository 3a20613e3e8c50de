"""Debug dumps of slime, laid out by hand as ``RolloutManager`` and ``train_dump_utils`` write them."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.errors import ArtifactError
from xcfg.importers.slime import Slime
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role


def sample(**changes: object) -> dict[str, object]:
    """``Sample.to_dict()`` of a two-turn sample: prompt 5 6, response 10 11 12 13 with 11 and 12 from a tool."""
    return {
        "group_index": 4,
        "index": 32,
        "prompt": "what?",
        "tokens": [5, 6, 10, 11, 12, 13],
        "response": "...",
        "response_length": 4,
        "label": None,
        "reward": 1.0,
        "loss_mask": [1, 0, 0, 1],
        "weight_versions": ["9", "9"],
        "rollout_log_probs": [-0.5, 0.0, 0.0, -1.25],
        "remove_sample": False,
        "status": "completed",
        "metadata": {},
    } | changes


def rollout_dump(*samples: dict[str, object]) -> Row:
    return Row(place="rollout_3.pt", fields={"rollout_id": 3, "samples": list(samples)})


def read(row: Row, role: Role = Role.ROLLOUT) -> list[Record]:
    return list(Slime().records([row], role))


def test_a_rollout_dump() -> None:
    plain = sample(index=33, tokens=[1, 2, 3], response_length=2, loss_mask=None, rollout_log_probs=[-0.25, -3.0])
    first, second = read(rollout_dump(sample(), plain))
    assert (first.id, second.id) == ("32", "33")
    assert first.assumed == ()
    assert first.prompt_ids.tolist() == [5, 6]
    assert first.response_ids.tolist() == [10, 11, 12, 13]
    assert first.logprobs.tolist() == [-0.5, 0.0, 0.0, -1.25]
    assert first.mask.tolist() == [True, False, False, True]
    assert first.weight_versions == ("9",)
    assert first.rank is None
    assert second.response_ids.tolist() == [2, 3]
    assert second.mask is None
    assert second.place == "rollout_3.pt samples[1]"


def test_a_training_dump_of_version_2_holds_both_sides() -> None:
    trained = {
        "data_parallel_rank": 1,
        "sample_index": 32,
        "rollout_position": 0,
        "tokens": np.array([5, 6, 10, 11, 12, 13]),
        "response_lengths": 4,
        "total_lengths": 6,
        "loss_masks": np.array([1, 0, 0, 1], dtype=np.int32),
        "rollout_log_probs": np.array([-0.5, 0.0, 0.0, -1.25], dtype=np.float32),
        "log_probs": np.array([-0.75, -4.0, -5.0, -1.5], dtype=np.float32),
    }
    fields = {"format_version": 2, "rollout_id": 3, "rank": 7, "samples": [trained], "dp_shards": [{"rank": 0}]}
    row = Row(place="train_3.pt", fields=fields)
    assert Slime().claims(frozenset(fields))
    (training,) = read(row, Role.TRAINING)
    assert training.id == "32"
    assert training.rank == 1
    assert training.response_ids.tolist() == [10, 11, 12, 13]
    assert training.logprobs.tolist() == [-0.75, -4.0, -5.0, -1.5]
    assert training.logprobs.dtype == np.float32
    assert training.mask.tolist() == [True, False, False, True]
    assert training.weight_versions == ()
    (rollout,) = read(row, Role.ROLLOUT)
    assert rollout.logprobs.tolist() == [-0.5, 0.0, 0.0, -1.25]
    assert rollout.rank is None


def test_a_training_dump_of_one_rank_before_version_2() -> None:
    data = {
        "tokens": [np.array([5, 6, 10, 11]), np.array([1, 2, 3])],
        "response_lengths": [2, 2],
        "loss_masks": [np.array([1, 1], np.int32), np.array([0, 1], np.int32)],
        "rewards": [0.5, -0.5],
        "raw_reward": [1.0, 0.0, 1.0, 0.0],
        "sample_indices": [40, 12],
        "rollout_log_probs": [np.array([-1.0, -2.0], np.float32), np.array([0.0, -0.5], np.float32)],
        "log_probs": [np.array([-1.5, -2.5], np.float32), np.array([-8.0, -0.25], np.float32)],
        "num_microbatches": [1],
    }
    first, second = read(Row(place="3_2.pt", fields={"rollout_id": 3, "rank": 2, "rollout_data": data}), Role.TRAINING)
    assert [(record.id, record.rank) for record in (first, second)] == [("40", 2), ("12", 2)]
    assert first.prompt_ids.tolist() == [5, 6]
    assert first.logprobs.tolist() == [-1.5, -2.5]
    assert second.prompt_ids.tolist() == [1]
    assert second.response_ids.tolist() == [2, 3]
    assert second.mask.tolist() == [False, True]
    assert second.logprobs.tolist() == [-8.0, -0.25]


def test_samples_one_a_line() -> None:
    rows = [Row(place="x.jsonl line 1", fields=sample()), Row(place="x.jsonl line 2", fields=sample(index=5))]
    assert [record.id for record in Slime().records(rows, Role.ROLLOUT)] == ["32", "5"]


def test_a_sample_without_index_takes_its_place_in_the_rollout() -> None:
    _, second = read(rollout_dump(sample(), sample(index=None)))
    assert (second.id, second.assumed) == ("row 1", ("id",))
    trained = {
        "tokens": [1, 2],
        "response_lengths": 1,
        "log_probs": [-1.0],
        "sample_index": None,
        "rollout_position": 1,
    }
    row = Row(place="t.pt", fields={"rollout_id": 0, "samples": [trained]})
    (record,) = read(row, Role.TRAINING)
    assert (record.id, record.assumed) == ("row 1", ("id",))


def test_a_removed_sample_has_no_active_token_as_in_training() -> None:
    (record,) = read(rollout_dump(sample(remove_sample=True)))
    assert record.mask.tolist() == [False] * 4


def test_a_null_logprob_stays_nan() -> None:
    (record,) = read(rollout_dump(sample(rollout_log_probs=[-0.5, None, 0.0, -1.25])))
    assert np.isnan(record.logprobs).tolist() == [False, True, False, False]


def test_lengths_that_disagree_are_left_to_the_comparison() -> None:
    (record,) = read(rollout_dump(sample(rollout_log_probs=[-0.5, -1.0], loss_mask=[1])))
    assert (record.response_ids.size, record.logprobs.size, record.mask.size) == (4, 2, 1)


def test_a_rollout_dump_has_no_training_side() -> None:
    with pytest.raises(ArtifactError, match=r"samples\[0\]: log_probs is missing.*--save-debug-train-data"):
        read(rollout_dump(sample()), Role.TRAINING)


def test_logprobs_that_were_not_kept_are_refused() -> None:
    with pytest.raises(ArtifactError, match=r"rollout_log_probs is null.*Sample\.rollout_log_probs"):
        read(rollout_dump(sample(rollout_log_probs=None)))


@pytest.mark.parametrize(("calls", "versions"), [([], ()), (["4"], ("4",)), (["4", "4", "4"], ("4",)), (None, ())])
def test_weight_versions(calls: object, versions: tuple[str, ...]) -> None:
    (record,) = read(rollout_dump(sample(weight_versions=calls)))
    assert record.weight_versions == versions


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight_versions": ["4", "5"]}, "generated by weight versions 4, 5"),
        ({"weight_versions": "4"}, "weight_versions is not a list"),
        ({"response_length": 7}, "a response of 7 tokens in 6 tokens"),
        ({"response_length": -1}, "a response of -1 tokens"),
        ({"tokens": None}, "'tokens' is null"),
        ({"loss_mask": [1, 2, 0, 1]}, r"loss_mask\[1\] is 2"),
    ],
)
def test_samples_that_do_not_fit_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read(rollout_dump(sample(**changes)))


def test_a_dump_of_other_shape_is_refused() -> None:
    with pytest.raises(ArtifactError, match="samples is not a list of samples"):
        read(Row(place="x.pt", fields={"rollout_id": 0, "samples": [1, 2]}))
    with pytest.raises(ArtifactError, match="rollout_data does not hold named fields"):
        read(Row(place="x.pt", fields={"rollout_id": 0, "rollout_data": [1]}))


def test_claims_dumps_and_samples_only() -> None:
    claims = Slime().claims
    assert claims(frozenset({"rollout_id", "samples"}))
    assert claims(frozenset({"rollout_id", "rank", "rollout_data"}))
    assert claims(frozenset(sample()))
    assert claims(frozenset({"tokens", "response_lengths", "log_probs"}))
    assert not claims(frozenset({"id", "response_ids", "logprobs"}))
    assert not claims(frozenset({"samples"}))
    assert not claims(frozenset({"tokens", "token_logprobs"}))


def test_the_files_of_two_ranks_keep_their_ranks() -> None:
    data = {"tokens": [[5, 6, 10]], "response_lengths": [1], "sample_indices": [32], "log_probs": [[-1.0]]}
    rows = [Row(place=f"3_{rank}.pt", fields={"rollout_id": 3, "rank": rank, "rollout_data": data}) for rank in (0, 1)]
    records = list(Slime().records(rows, Role.TRAINING))
    assert [(record.id, record.rank) for record in records] == [("32", 0), ("32", 1)]

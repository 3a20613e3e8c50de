"""Fields of OpenRLHF's ``Experience``, laid out by hand as ``SamplesGenerator`` makes and pads them."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.errors import ArtifactError
from xcfg.importers.openrlhf import OpenRlhf
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

# T = 8. The first: prompt 5 6 7, response 20 21, three places of padding. The second: prompt 8 9, actions 30 31,
# an environment's 40 41, action 32, and the environment's last word 42. Column t is of token t + 1.
SEQUENCES = [[5, 6, 7, 20, 21, 0, 0, 0], [8, 9, 30, 31, 40, 41, 32, 42]]
ATTENTION = [[1, 1, 1, 1, 1, 0, 0, 0], [1] * 8]
ACTIONS = [[0, 0, 1, 1, 0, 0, 0], [0, 1, 1, 0, 0, 1, 0]]
ROLLOUT = [[0, 0, -0.5, -1.25, 0, 0, 0], [0, -2.0, -0.25, 0, 0, -0.75, 0]]
TRAINED = [[-9, -9, -0.75, -1.0, -9, -9, -9], [-9, -2.5, -0.5, -7, -6, -0.125, -5]]


def experience(**changes: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "sequences": np.array(SEQUENCES),
        "attention_mask": np.array(ATTENTION),
        "action_mask": np.array(ACTIONS, dtype=bool),
        "rollout_log_probs": np.array(ROLLOUT, dtype=np.float32),
        "action_log_probs": np.array(TRAINED, dtype=np.float32),
        "index": [3, 4],
        "prompts": ["a", "b"],
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


def read(fields: dict[str, object], role: Role = Role.ROLLOUT) -> list[Record]:
    return list(OpenRlhf().records([Row(place="e.npz", fields=fields)], role))


def test_a_batch_shifted_by_one() -> None:
    first, second = read(experience())
    assert first.prompt_ids.tolist() == [5, 6, 7]
    assert first.response_ids.tolist() == [20, 21]
    assert first.logprobs.tolist() == [-0.5, -1.25]
    assert first.logprobs.dtype == np.float32
    assert first.mask.tolist() == [True, True]
    assert second.prompt_ids.tolist() == [8, 9]
    assert second.response_ids.tolist() == [30, 31, 40, 41, 32, 42]
    assert second.logprobs.tolist() == [-2.0, -0.25, 0.0, 0.0, -0.75, 0.0]
    assert second.mask.tolist() == [True, True, False, False, True, False]
    assert (first.id, second.id, first.assumed) == ("3", "4", ())
    assert second.place == "e.npz sample 1"


def test_the_training_side_is_the_actors_column() -> None:
    first, second = read(experience(), Role.TRAINING)
    assert first.logprobs.tolist() == [-0.75, -1.0]
    assert second.logprobs.tolist() == [-2.5, -0.5, -7.0, -6.0, -0.125, -5.0]


def test_padding_on_the_left() -> None:
    fields = {
        name: np.array([[0, *values[0]]]) for name, values in (("sequences", SEQUENCES), ("action_mask", ACTIONS))
    }
    fields["attention_mask"] = np.array([[0, *ATTENTION[0]]])
    fields["rollout_log_probs"] = np.array([[0, *ROLLOUT[0]]])
    (record,) = read(fields)
    assert record.prompt_ids.tolist() == [5, 6, 7]
    assert record.response_ids.tolist() == [20, 21]
    assert record.logprobs.tolist() == [-0.5, -1.25]


def test_without_index_the_row_numbers() -> None:
    rows = [Row(place=f"line {at}", fields=experience(index=None)) for at in (1, 2)]
    records = list(OpenRlhf().records(rows, Role.ROLLOUT))
    assert [record.id for record in records] == ["row 0", "row 1", "row 2", "row 3"]
    assert records[0].assumed == ("id",)


def test_one_sample_as_flat_lists_without_padding() -> None:
    (record,) = read({"sequences": [5, 6, 7], "action_mask": [0, 1], "rollout_log_probs": [0.0, -0.5]})
    assert record.prompt_ids.tolist() == [5, 6]
    assert record.response_ids.tolist() == [7]
    assert record.logprobs.tolist() == [-0.5]


def test_a_sequence_without_an_action_has_nothing_active() -> None:
    (record,) = read({"sequences": [5, 6, 7], "action_mask": [0, 0], "rollout_log_probs": [0.0, 0.0]})
    assert record.prompt_ids.tolist() == [5]
    assert record.response_ids.tolist() == [6, 7]
    assert record.mask.tolist() == [False, False]


@pytest.mark.parametrize(
    ("role", "name", "setting"),
    [
        (Role.ROLLOUT, "rollout_log_probs", "is_correction_enable"),
        (Role.TRAINING, "action_log_probs", "save the experience after it"),
    ],
)
def test_missing_or_null_logprobs_name_the_setting(role: Role, name: str, setting: str) -> None:
    with pytest.raises(ArtifactError, match=f"{name} is missing.*{setting}"):
        read(experience(**{name: None}), role)
    with pytest.raises(ArtifactError, match=f"{name} is null.*{setting}"):
        read(experience() | {name: None}, role)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action_mask": np.array([[1, 1, 0, 0], [1, 0, 1, 0]])}, "action_mask is 4 wide for sequences of 8"),
        ({"action_mask": np.array([[0, 0, 1, 1, 1, 0, 0], ACTIONS[1]])}, "action_mask is 1 at padding"),
        ({"attention_mask": np.ones((2, 7))}, "attention_mask is 7 wide for 8"),
        ({"attention_mask": np.array([[1, 0, 1, 1, 1, 0, 0, 0], ATTENTION[1]])}, "attention_mask is 0 at 1 between"),
        ({"attention_mask": None}, "without attention_mask"),
        ({"rollout_log_probs": np.zeros((2, 8))}, "rollout_log_probs is 8 wide for 7"),
    ],
)
def test_fields_that_do_not_fit_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read(experience(**changes))


def test_claims_an_experience_and_not_another_frameworks_batch() -> None:
    claims = OpenRlhf().claims
    assert claims(frozenset(experience()))
    assert not claims(frozenset({"sequences", "attention_mask", "action_mask", "loss_mask", "rollout_logprobs"}))
    assert not claims(frozenset({"id", "response_ids", "logprobs"}))
    assert not claims(frozenset({"sequences", "attention_mask"}))

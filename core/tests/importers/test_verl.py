"""Batches of verl, laid out by hand as ``AgentLoopWorker._postprocess`` pads them (prompts left, responses right)."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from xcfg.errors import ArtifactError
from xcfg.importers.verl import Verl
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

# Two samples, P = 4 and R = 5. The second called a tool: ids 31 and 32 came from it.
PROMPTS = [[0, 0, 7, 8], [0, 4, 5, 6]]
RESPONSES = [[21, 22, 23, 0, 0], [30, 31, 32, 33, 0]]
ATTENTION = [[0, 0, 1, 1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1, 1, 1, 0]]
POSITIONS = [[0, 0, 0, 1, 2, 3, 4, 0, 0], [0, 0, 1, 2, 3, 4, 5, 6, 0]]
RESPONSE_MASK = [[1, 1, 1, 0, 0], [1, 0, 0, 1, 0]]
ROLLOUT = [[-0.5, -1.25, -0.125, 0.0, 0.0], [-2.0, 0.0, 0.0, -0.75, 0.0]]
OLD = [[-0.5, -1.5, -0.25, 0.0, 0.0], [-2.25, -9.0, -8.0, -0.5, 0.0]]


def batch(**changes: object) -> dict[str, object]:
    """The tensors of ``DataProto.batch`` as numpy arrays; a change of None leaves the field out."""
    fields: dict[str, object] = {
        "prompts": np.array(PROMPTS),
        "responses": np.array(RESPONSES),
        "input_ids": np.concatenate([PROMPTS, RESPONSES], axis=1),
        "attention_mask": np.array(ATTENTION),
        "position_ids": np.array(POSITIONS),
        "response_mask": np.array(RESPONSE_MASK),
        "rollout_log_probs": np.array(ROLLOUT, dtype=np.float32),
        "old_log_probs": np.array(OLD, dtype=np.float32),
        "ref_log_prob": np.zeros((2, 5), dtype=np.float32),
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


def read(fields: dict[str, object], role: Role = Role.ROLLOUT) -> list[Record]:
    return list(Verl().records([Row(place="step.npz", fields=fields)], role))


def test_a_batch_loses_its_padding_and_keeps_the_tokens_of_the_tool() -> None:
    first, second = read(batch())
    assert first.prompt_ids.tolist() == [7, 8]
    assert first.response_ids.tolist() == [21, 22, 23]
    assert first.mask.tolist() == [True, True, True]
    assert first.logprobs.tolist() == [-0.5, -1.25, -0.125]
    assert first.logprobs.dtype == np.float32
    assert first.position_ids.tolist() == [0, 1, 2, 3, 4]
    assert second.prompt_ids.tolist() == [4, 5, 6]
    assert second.response_ids.tolist() == [30, 31, 32, 33]
    assert second.mask.tolist() == [True, False, False, True]
    assert second.logprobs.tolist() == [-2.0, 0.0, 0.0, -0.75]
    assert second.position_ids.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert [record.id for record in (first, second)] == ["row 0", "row 1"]
    assert first.assumed == ("id",)
    assert second.place == "step.npz sample 1"


def test_the_training_side_is_the_actors_column() -> None:
    first, second = read(batch(), Role.TRAINING)
    assert first.logprobs.tolist() == [-0.5, -1.5, -0.25]
    assert second.logprobs.tolist() == [-2.25, -9.0, -8.0, -0.5]
    assert second.response_ids.tolist() == [30, 31, 32, 33]


def test_a_batch_stored_as_npz_reads_alike() -> None:
    stored = io.BytesIO()
    np.savez(stored, **batch(uid=np.array(["p", "p"])))
    stored.seek(0)
    with np.load(stored, allow_pickle=False) as arrays:
        first, second = read(dict(arrays))
    assert second.response_ids.tolist() == [30, 31, 32, 33]
    assert (first.id, second.id) == ("p/0", "p/1")


def test_one_sample_a_line_with_its_padding() -> None:
    lines = [json.dumps({name: np.asarray(value)[at].tolist() for name, value in batch().items()}) for at in (0, 1)]
    rows = [Row(place=f"x.jsonl line {at}", fields=json.loads(line)) for at, line in enumerate(lines, 1)]
    first, second = Verl().records(rows, Role.ROLLOUT)
    assert first.response_ids.tolist() == [21, 22, 23]
    assert second.logprobs.tolist() == [-2.0, 0.0, 0.0, -0.75]
    assert second.logprobs.dtype == np.float64
    assert (second.id, second.place) == ("row 1", "x.jsonl line 2")


def test_jagged_lists_without_attention_mask_hold_no_padding() -> None:
    fields = {
        "prompts": [np.array([7, 8]), np.array([4, 5, 6])],
        "responses": [np.array([21, 22, 23]), np.array([30, 31, 32, 33])],
        "response_mask": [np.array([1, 1, 1]), np.array([1, 0, 0, 1])],
        "rollout_log_probs": [np.array(ROLLOUT[0][:3], np.float32), np.array(ROLLOUT[1][:4], np.float32)],
    }
    first, second = read(fields)
    assert first.prompt_ids.tolist() == [7, 8]
    assert second.mask.tolist() == [True, False, False, True]
    assert second.position_ids is None


def test_without_response_mask_every_response_token_counts() -> None:
    assert [record.mask for record in read(batch(response_mask=None))] == [None, None]


def test_the_text_row_of_multimodal_positions() -> None:
    whole = np.stack([np.array(POSITIONS), *[np.full((2, 9), 99)] * 3], axis=1)
    assert whole.shape == (2, 4, 9)
    assert read(batch(position_ids=whole))[0].position_ids.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ArtifactError, match="position_ids has 3 rows"):
        read(batch(position_ids=whole[:, :3]))


def test_weight_version_and_temperature() -> None:
    steps = np.array([3, 3])
    fields = batch(min_global_steps=steps, max_global_steps=steps, temperature=0.6)
    assert read(fields)[1].weight_versions == ("3",)
    assert read(fields)[1].semantics == {"temperature": 0.6}
    training = read(fields, Role.TRAINING)[1]
    assert training.weight_versions == ()
    assert training.semantics == {"temperature": 0.6}
    assert read(batch(min_global_steps=[None, None], max_global_steps=[None, None]))[0].weight_versions == ()


def test_a_sample_of_two_weight_versions_is_refused() -> None:
    with pytest.raises(ArtifactError, match=r"sample 1: generated by weight versions 3 to 4"):
        read(batch(min_global_steps=np.array([3, 3]), max_global_steps=np.array([3, 4])))


@pytest.mark.parametrize(
    ("role", "name", "setting"),
    [
        (Role.ROLLOUT, "rollout_log_probs", "calculate_log_probs=true"),
        (Role.TRAINING, "old_log_probs", "after the actor has recomputed them"),
    ],
)
def test_missing_or_null_logprobs_name_the_setting(role: Role, name: str, setting: str) -> None:
    with pytest.raises(ArtifactError, match=f"{name} is missing.*{setting}"):
        read(batch(**{name: None}), role)
    with pytest.raises(ArtifactError, match=f"{name} is null.*{setting}"):
        read(batch(**{name: None}) | {name: None}, role)


def test_a_side_that_is_null_does_not_stop_the_other() -> None:
    line = {name: np.asarray(value)[0].tolist() for name, value in batch().items()} | {"old_log_probs": None}
    assert read(line)[0].logprobs.tolist() == [-0.5, -1.25, -0.125]


def test_bypass_mode_is_refused_on_either_side() -> None:
    width = 20
    rollout = -np.linspace(0.125, 3, width, dtype=np.float32)[None]
    fields = {
        "prompts": np.array([[5]]),
        "responses": np.arange(width)[None],
        "attention_mask": np.ones((1, 1 + width), dtype=np.int64),
        "response_mask": np.ones((1, width), dtype=np.int64),
        "rollout_log_probs": rollout,
        "old_log_probs": rollout.copy(),
    }
    for role in Role:
        with pytest.raises(ArtifactError, match=r"one measurement stored twice.*bypass_mode"):
            read(fields, role)
    fields["old_log_probs"] = rollout.copy()
    fields["old_log_probs"][0, 7] = np.nextafter(rollout[0, 7], np.float32(0))
    assert len(read(fields)) == 1


def test_bypass_mode_is_seen_past_masked_tokens() -> None:
    width = 20
    rollout = -np.linspace(0.125, 3, width, dtype=np.float32)[None]
    masked = np.ones((1, width), dtype=np.int64)
    masked[0, 3] = 0
    old = rollout.copy()
    old[0, 3] = -7.0
    fields = {
        "prompts": np.array([[5]]),
        "responses": np.arange(width)[None],
        "attention_mask": np.ones((1, 1 + width), dtype=np.int64),
        "response_mask": masked,
        "rollout_log_probs": rollout,
        "old_log_probs": old,
    }
    with pytest.raises(ArtifactError, match="19 tokens"):
        read(fields)


def test_the_dump_of_generations_is_claimed_and_refused() -> None:
    line = {"input": "1+1?", "output": "2", "gts": "2", "score": 1.0, "step": 7, "acc": True}
    assert Verl().claims(frozenset(line))
    with pytest.raises(ArtifactError, match=r"without token ids and without logprobs.*DataProto"):
        read(line)


def test_a_padded_array_without_attention_mask_is_refused() -> None:
    with pytest.raises(ArtifactError, match="without attention_mask"):
        read(batch(attention_mask=None))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rollout_log_probs": np.zeros((2, 6), np.float32)}, "rollout_log_probs is 6 wide for 5"),
        ({"response_mask": np.ones((2, 4), np.int64)}, "response_mask is 4 wide for 5"),
        ({"attention_mask": np.ones((2, 8), np.int64)}, "attention_mask is 8 wide for 9"),
        ({"position_ids": np.zeros((2, 8), np.int64)}, "position_ids is 8 wide for 9"),
        ({"rollout_log_probs": np.zeros((3, 5), np.float32)}, "rollout_log_probs holds 3 items for the 2"),
        ({"attention_mask": np.array([[0, 0, 1, 1, 1, 0, 1, 0, 0], ATTENTION[1]])}, "response is 0 at 1 between"),
        ({"prompts": None}, "'prompts' is missing"),
    ],
)
def test_fields_that_do_not_fit_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read(batch(**changes))


def test_claims_its_batch_and_no_generic_record() -> None:
    claims = Verl().claims
    assert claims(frozenset(batch()))
    assert claims(frozenset({"prompts", "responses", "rollout_log_probs"}))
    assert not claims(frozenset({"id", "prompt_ids", "response_ids", "logprobs", "mask"}))
    assert not claims(frozenset({"prompts", "responses", "scores"}))
    assert not claims(frozenset({"sequences", "attention_mask", "action_mask", "rollout_log_probs"}))


def test_a_response_of_no_token_and_an_empty_batch() -> None:
    attention = np.array(ATTENTION)
    attention[0, 4:] = 0
    record = read(batch(attention_mask=attention))[0]
    assert record.prompt_ids.tolist() == [7, 8]
    assert (record.response_ids.size, record.logprobs.size, record.mask.size) == (0, 0, 0)
    assert read({name: np.asarray(value)[:0] for name, value in batch().items()}) == []

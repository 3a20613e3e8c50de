"""SkyRL's TrainingInputBatch in both of its paddings, its GeneratorOutput, and its dump of texts.

Laid out by the pictures in ``convert_prompts_responses_to_batch_tensors`` of https://github.com/NovaSky-AI/SkyRL:
``skyrl/train/dataset/preprocess.py`` (0.4.0, everything right-aligned) and
``skyrl-train/skyrl_train/dataset/preprocess.py`` (0.3.1, responses left-aligned).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcfg.errors import ArtifactError
from xcfg.importers.formats import jsonl, npz
from xcfg.importers.skyrl import SkyRl
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

PAD = 0

PROMPTS = [[11], [21, 22, 23]]
RESPONSES = [[31, 51, 52, 32], [41, 42]]
LOSS = [[True, False, False, True], [True, True]]
ROLLOUT = [[-0.25, 0.0, 0.0, -0.5], [-0.75, -1.0]]
TRAINING = [[-0.25, -7.0, -8.0, -0.625], [-0.75, -1.25]]


def right_aligned() -> dict[str, Any]:
    """0.4: width 5 is the longest prompt and response together; padding is on the left everywhere."""
    return {
        "sequences": np.array([[11, 31, 51, 52, 32], [21, 22, 23, 41, 42]]),
        "attention_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]),
        "response_mask": np.array([[1, 1, 1, 1], [0, 0, 1, 1]]),
        "loss_mask": np.array([[1, 0, 0, 1], [0, 0, 1, 1]], dtype=np.float32),
        "rollout_logprobs": np.array([[-0.25, 0.0, 0.0, -0.5], [0.0, 0.0, -0.75, -1.0]], dtype=np.float32),
        "action_log_probs": np.array([[-0.25, -7.0, -8.0, -0.625], [-3.0, -4.0, -0.75, -1.25]], dtype=np.float32),
    }


def left_aligned() -> dict[str, Any]:
    """0.3: longest prompt 3 and longest response 4 side by side; prompts padded left, responses right."""
    return {
        "sequences": np.array([[PAD, PAD, 11, 31, 51, 52, 32], [21, 22, 23, 41, 42, PAD, PAD]]),
        "attention_mask": np.array([[0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]]),
        "response_mask": np.array([[1, 1, 1, 1], [1, 1, 0, 0]]),
        "loss_mask": np.array([[1, 0, 0, 1], [1, 1, 0, 0]], dtype=np.float32),
        "rollout_logprobs": np.array([[-0.25, 0.0, 0.0, -0.5], [-0.75, -1.0, 0.0, 0.0]], dtype=np.float32),
        "action_log_probs": np.array([[-0.25, -7.0, -8.0, -0.625], [-0.75, -1.25, -3.0, -4.0]], dtype=np.float32),
    }


def records(tmp_path: Path, data: dict[str, Any], role: Role) -> list[Record]:
    np.savez(tmp_path / "step.npz", **data)
    return list(SkyRl().records(npz.read(tmp_path / "step.npz"), role))


@pytest.mark.parametrize("layout", [right_aligned, left_aligned])
@pytest.mark.parametrize(("role", "expected"), [(Role.ROLLOUT, ROLLOUT), (Role.TRAINING, TRAINING)])
def test_both_paddings_hold_the_same_sequences(tmp_path: Path, layout: Any, role: Role, expected: Any) -> None:
    for at, record in enumerate(records(tmp_path, layout(), role)):
        assert record.prompt_ids is not None and record.mask is not None
        assert record.id == f"row {at}"
        assert record.prompt_ids.tolist() == PROMPTS[at]
        assert record.response_ids.tolist() == RESPONSES[at]
        assert record.response_ids.dtype == np.int64
        assert record.mask.tolist() == LOSS[at]
        assert record.logprobs.tolist() == expected[at]
        assert record.logprobs.dtype == np.float32
        assert record.assumed == ("id",)
        assert record.place == f"step.npz sample {at}"
        assert (record.position_ids, record.rank, record.top_logprobs, record.dtype) == (None, None, None, "")
        assert record.weight_versions == () and dict(record.semantics) == {}


def output(number: int) -> dict[str, Any]:
    return {
        "prompt_token_ids": PROMPTS[number],
        "response_ids": RESPONSES[number],
        "loss_masks": [int(active) for active in LOSS[number]],
        "rollout_logprobs": ROLLOUT[number],
        "stop_reasons": "stop",
    }


def whole_output() -> dict[str, Any]:
    columns = [output(0), output(1)]
    return {name: [column[name] for column in columns] for name in columns[0]}


@pytest.mark.parametrize("lines", [[output(0), output(1)], [whole_output()]], ids=["a line a sequence", "one line"])
def test_a_generators_output_pairs_with_the_batch_made_of_it(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rollout = list(SkyRl().records(jsonl.read(path), Role.ROLLOUT))
    for at, (one, other) in enumerate(zip(rollout, records(tmp_path, right_aligned(), Role.TRAINING), strict=True)):
        assert one.prompt_ids is not None and one.mask is not None and other.mask is not None
        assert one.id == other.id
        assert one.prompt_ids.tolist() == PROMPTS[at]
        assert one.response_ids.tolist() == other.response_ids.tolist() == RESPONSES[at]
        assert one.mask.tolist() == other.mask.tolist() == LOSS[at]
        assert one.logprobs.tolist() == ROLLOUT[at]
        assert one.assumed == ("id",)


def test_a_generators_output_has_no_training_side() -> None:
    with pytest.raises(ArtifactError, match=r"holds the rollout's logprobs only.*action_log_probs"):
        list(SkyRl().records([Row(place="rollout.jsonl line 1", fields=output(0))], Role.TRAINING))


@pytest.mark.parametrize("absent", [{}, {"rollout_logprobs": None}])
def test_a_rollout_without_logprobs_says_which_setting_gives_them(absent: dict[str, None]) -> None:
    fields = {name: value for name, value in output(0).items() if name != "rollout_logprobs"} | absent
    assert SkyRl().claims(frozenset(fields))
    with pytest.raises(ArtifactError, match=r"rollout_logprobs is (null|missing).*sampling_params.logprobs=1"):
        list(SkyRl().records([Row(place="rollout.jsonl line 1", fields=fields)], Role.ROLLOUT))


def test_a_skipped_training_pass_says_which_losses_skip_it(tmp_path: Path) -> None:
    data = right_aligned()
    del data["action_log_probs"]
    with pytest.raises(ArtifactError, match=r"action_log_probs is missing.*rollout_is, dppo, cispo.*policy_loss_type"):
        records(tmp_path, data, Role.TRAINING)
    assert len(records(tmp_path, data, Role.ROLLOUT)) == 2


def test_null_logprobs_become_nan_and_stay_in_place() -> None:
    fields = output(0) | {"rollout_logprobs": [-0.25, None, None, -0.5]}
    (record,) = SkyRl().records([Row(place="rollout.jsonl line 1", fields=fields)], Role.ROLLOUT)
    assert np.isnan(record.logprobs).tolist() == [False, True, True, False]


def test_a_generators_output_is_not_trimmed() -> None:
    fields = output(0) | {"rollout_logprobs": [-0.25, -0.5]}
    (record,) = SkyRl().records([Row(place="rollout.jsonl line 1", fields=fields)], Role.ROLLOUT)
    assert (record.response_ids.size, record.logprobs.size) == (4, 2)


def test_a_row_that_fills_up_the_batch_is_kept_and_inactive(tmp_path: Path) -> None:
    """``pad_training_input_batch`` appends copies of row 0 with a loss mask of 0."""
    data = {name: np.concatenate([values, values[:1]]) for name, values in right_aligned().items()}
    data["loss_mask"][2] = 0
    last = records(tmp_path, data, Role.TRAINING)[2]
    assert last.mask is not None
    assert (last.id, last.response_ids.tolist(), last.mask.any()) == ("row 2", RESPONSES[0], False)


def test_a_sequence_without_response(tmp_path: Path) -> None:
    data = right_aligned()
    data["response_mask"][1] = data["loss_mask"][1] = 0
    two = records(tmp_path, data, Role.ROLLOUT)[1]
    assert two.prompt_ids is not None
    assert two.prompt_ids.tolist() == [21, 22, 23, 41, 42]
    assert two.response_ids.size == two.logprobs.size == 0


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("response_mask", [[1, 1, 1, 0], [0, 0, 1, 1]], "response_mask does not mark the last tokens"),
        ("response_mask", [[1, 0, 1, 1], [0, 0, 1, 1]], "response_mask is 0 at 1 between tokens"),
        ("attention_mask", [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], "response_mask does not mark the last tokens"),
        ("attention_mask", [[1, 1, 1, 1], [1, 1, 1, 1]], "attention_mask is 4 wide for 5 padded tokens"),
        ("response_mask", [[1] * 6, [1] * 6], "response_mask does not mark the last tokens"),
        ("loss_mask", [[1, 0, 1], [0, 1, 1]], "loss_mask is 3 wide for 4 padded tokens"),
        ("loss_mask", [[0.5] * 4, [0.5] * 4], "loss_mask"),
        ("rollout_logprobs", [[-1.0] * 5, [-1.0] * 5], "rollout_logprobs is 5 wide for 4 padded tokens"),
        ("rollout_logprobs", [[-1.0] * 4], "rollout_logprobs holds 1 items for the 2 sequences"),
    ],
)
def test_a_batch_that_contradicts_itself_is_refused(tmp_path: Path, name: str, value: Any, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        records(tmp_path, right_aligned() | {name: np.array(value)}, Role.ROLLOUT)


def test_the_evaluation_dump_is_claimed_and_refused() -> None:
    fields = {
        "input_prompt": "6*7?",
        "output_response": "42",
        "score": 1.0,
        "stop_reason": "stop",
        "env_class": "gsm8k",
    }
    assert SkyRl().claims(frozenset(fields))
    with pytest.raises(ArtifactError, match=r"gsm8k.jsonl line 1.*without logprobs.*TrainingInputBatch"):
        list(SkyRl().records([Row(place="gsm8k.jsonl line 1", fields=fields)], Role.ROLLOUT))


def test_it_claims_its_own_layouts_only() -> None:
    assert SkyRl().claims(frozenset(right_aligned()))
    assert SkyRl().claims(frozenset(output(0)))
    assert not SkyRl().claims(frozenset({"id", "response_ids", "logprobs"}))
    assert not SkyRl().claims(frozenset({"id", "response_ids", "logprobs", "rollout_logprobs"}))
    assert not SkyRl().claims(frozenset({"sequences", "attention_mask", "action_mask", "action_log_probs"}))
    assert not SkyRl().claims(frozenset({"prompts", "responses", "response_mask", "rollout_log_probs"}))

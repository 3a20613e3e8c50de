"""NeMo-RL's train_data_step{N}.jsonl: one line a sample, each a batch of one, nothing shifted.

Laid out as ``Logger.log_batched_dict_as_jsonl`` writes it (nemo_rl/utils/logger.py and ``BatchedDataDict.slice`` in
nemo_rl/distributed/batched_data_dict.py of https://github.com/NVIDIA-NeMo/RL): every value is sliced [i : i + 1].
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcfg.errors import ArtifactError
from xcfg.importers.formats import jsonl
from xcfg.importers.nemo_rl import NemoRl
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

PAD = 0


def log_data() -> dict[str, list[Any]]:
    """Two samples padded to 8: a prompt of 3 with 4 generated tokens; two turns with a tool's answer between them."""
    return {
        "content": [["What is 6*7?42."], ["Look it up.call42done"]],
        "rewards": [1.0, 0.0],
        "input_lengths": [7, 6],
        "token_ids": [[11, 12, 13, 21, 22, 23, 24, PAD], [31, 41, 51, 52, 42, 43, PAD, PAD]],
        "token_loss_mask": [[0, 0, 0, 1, 1, 1, 1, 0], [0, 1, 0, 0, 1, 1, 0, 0]],
        "sample_loss_mask": [1.0, 1.0],
        "advantages": [[0.5] * 8, [-0.5] * 8],
        "generation_logprobs": [
            [0.0, 0.0, 0.0, -0.25, -0.5, -0.75, -1.0, 0.0],
            [0.0, -1.25, 0.0, 0.0, -1.5, -1.75, 0.0, 0.0],
        ],
        "prev_logprobs": [
            [0.0, -9.0, -8.0, -0.375, -0.5, -0.75, -1.125, -7.0],
            [0.0, -1.25, -6.0, -5.0, -1.5, -2.0, -4.0, -3.0],
        ],
    }


def write(path: Path, data: dict[str, list[Any]]) -> Path:
    lines = []
    for i in range(len(data["input_lengths"])):
        sample = {key: value[i : i + 1] for key, value in data.items()}
        lines.append(json.dumps({**sample, "idx": i}, default=str) + "\n")
    path.write_text("".join(lines))
    return path


def records(tmp_path: Path, data: dict[str, list[Any]], role: Role) -> list[Record]:
    return list(NemoRl().records(jsonl.read(write(tmp_path / "train_data_step1.jsonl", data)), role))


def test_one_turn_keeps_every_logprob_at_its_own_token(tmp_path: Path) -> None:
    one = records(tmp_path, log_data(), Role.ROLLOUT)[0]
    assert one.prompt_ids is not None and one.mask is not None
    assert one.id == "0"
    assert one.prompt_ids.tolist() == [11, 12, 13]
    assert one.response_ids.tolist() == [21, 22, 23, 24]
    assert one.response_ids.dtype == np.int64
    assert one.logprobs.tolist() == [-0.25, -0.5, -0.75, -1.0]
    assert one.logprobs.dtype == np.float64
    assert one.mask.tolist() == [True] * 4
    assert one.assumed == ()
    assert one.place == "train_data_step1.jsonl line 1 sample 0"
    assert (one.position_ids, one.rank, one.top_logprobs, one.dtype) == (None, None, None, "")
    assert one.weight_versions == () and dict(one.semantics) == {}


def test_the_training_side_is_the_other_column_of_the_same_file(tmp_path: Path) -> None:
    one = records(tmp_path, log_data(), Role.TRAINING)[0]
    assert one.response_ids.tolist() == [21, 22, 23, 24]
    assert one.logprobs.tolist() == [-0.375, -0.5, -0.75, -1.125]


def test_a_tool_turn_stays_in_the_response_and_is_masked_out(tmp_path: Path) -> None:
    two = records(tmp_path, log_data(), Role.TRAINING)[1]
    assert two.prompt_ids is not None and two.mask is not None
    assert two.id == "1"
    assert two.prompt_ids.tolist() == [31]
    assert two.response_ids.tolist() == [41, 51, 52, 42, 43]
    assert two.mask.tolist() == [True, False, False, True, True]
    assert two.logprobs.tolist() == [-1.25, -6.0, -5.0, -1.5, -2.0]


def test_a_sample_the_trainer_masked_for_its_drift_is_still_active(tmp_path: Path) -> None:
    """``compute_and_apply_seq_logprob_error_masking`` puts 0 on the worst sequences: they are what one looks for."""
    data = log_data()
    data["sample_loss_mask"] = [0.0, 1.0]
    mask = records(tmp_path, data, Role.ROLLOUT)[0].mask
    assert mask is not None and mask.all()


def test_the_first_token_has_no_logprob_and_is_prompt(tmp_path: Path) -> None:
    data = log_data()
    data["token_loss_mask"][0] = [1, 1, 0, 1, 1, 1, 1, 0]
    one = records(tmp_path, data, Role.TRAINING)[0]
    assert one.prompt_ids is not None and one.mask is not None
    assert one.prompt_ids.tolist() == [11]
    assert one.logprobs.tolist() == [-9.0, -8.0, -0.375, -0.5, -0.75, -1.125]
    assert one.mask.tolist() == [True, False, True, True, True, True]


def test_a_sample_without_generated_tokens_is_kept_empty(tmp_path: Path) -> None:
    data = log_data()
    data["token_loss_mask"][1] = [0] * 8
    two = records(tmp_path, data, Role.ROLLOUT)[1]
    assert two.prompt_ids is not None
    assert two.prompt_ids.tolist() == [31, 41, 51, 52, 42, 43]
    assert two.response_ids.size == two.logprobs.size == 0


def test_train_data_saved_as_arrays_has_the_trainers_own_names() -> None:
    data = log_data()
    row = Row(
        place="step.npz",
        fields={
            "input_ids": np.array(data["token_ids"]),
            "input_lengths": np.array(data["input_lengths"]),
            "token_mask": np.array(data["token_loss_mask"]),
            "sample_mask": np.ones(2, dtype=np.float32),
            "generation_logprobs": np.array(data["generation_logprobs"], dtype=np.float32),
            "prev_logprobs": np.array(data["prev_logprobs"], dtype=np.float32),
        },
    )
    one, two = NemoRl().records([row], Role.ROLLOUT)
    assert (one.id, two.id) == ("row 0", "row 1")
    assert one.assumed == ("id",)
    assert two.logprobs.tolist() == [-1.25, 0.0, 0.0, -1.5, -1.75]
    assert two.logprobs.dtype == np.float32


def test_a_null_logprob_becomes_nan(tmp_path: Path) -> None:
    data = log_data()
    data["generation_logprobs"][0][4] = None
    one = records(tmp_path, data, Role.ROLLOUT)[0]
    assert np.isnan(one.logprobs).tolist() == [False, True, False, False]


def test_the_placeholder_of_a_skipped_pass_is_no_measurement(tmp_path: Path) -> None:
    """``train_data["prev_logprobs"] = torch.zeros_like(...)`` under force_on_policy_ratio."""
    data = log_data()
    data["prev_logprobs"] = [[0.0] * 8, [0.0] * 8]
    with pytest.raises(ArtifactError, match=r"line 1 .*placeholder.*force_on_policy_ratio"):
        records(tmp_path, data, Role.TRAINING)
    assert len(records(tmp_path, data, Role.ROLLOUT)) == 2


def test_certain_tokens_are_no_placeholder(tmp_path: Path) -> None:
    data = log_data()
    data["prev_logprobs"][0] = [0.0, -9.0, -8.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert records(tmp_path, data, Role.TRAINING)[0].logprobs.tolist() == [0.0] * 4


@pytest.mark.parametrize("gone", ["token_ids", "token_loss_mask"])
def test_an_older_log_says_what_to_add(tmp_path: Path, gone: str) -> None:
    data = log_data()
    del data[gone]
    with pytest.raises(ArtifactError, match=rf"{gone} is missing.*log_data"):
        records(tmp_path, data, Role.ROLLOUT)


@pytest.mark.parametrize(("role", "name"), [(Role.ROLLOUT, "generation_logprobs"), (Role.TRAINING, "prev_logprobs")])
def test_a_log_without_the_sides_logprobs_is_refused(tmp_path: Path, role: Role, name: str) -> None:
    texts = {"content": [["a"]], "input_lengths": [3]}
    assert NemoRl().claims(frozenset({*texts, "idx"}))
    with pytest.raises(ArtifactError, match=rf"{name} is missing, so this side has no logprobs.*distillation"):
        records(tmp_path, texts, role)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("input_lengths", 9, "input_lengths is 9 for 8 padded tokens"),
        ("input_lengths", 5, "token_loss_mask is 1 at 5, in the padding that follows 5 tokens"),
        ("token_loss_mask", [0, 0, 0, 1, 1, 1, 1], "token_loss_mask is 7 wide for 8 padded tokens"),
        ("generation_logprobs", [-1.0] * 4, "generation_logprobs is 4 wide for 8 padded tokens"),
        ("generation_logprobs", None, "generation_logprobs is null"),
        ("input_lengths", 6.5, "input_lengths"),
    ],
)
def test_a_line_that_contradicts_itself_is_refused(tmp_path: Path, field: str, value: object, message: str) -> None:
    data = log_data()
    data[field][0] = value
    with pytest.raises(ArtifactError, match=message):
        records(tmp_path, data, Role.ROLLOUT)


def test_it_claims_its_own_layout_only() -> None:
    nemo = NemoRl()
    assert nemo.claims(frozenset({*log_data(), "idx"}))
    assert nemo.claims(frozenset({"input_ids", "input_lengths", "token_mask", "prev_logprobs"}))
    assert not nemo.claims(frozenset({"id", "response_ids", "logprobs"}))
    assert not nemo.claims(frozenset({"prompt_ids", "completion_ids", "completion_mask"}))
    assert not nemo.claims(frozenset({"sequences", "response_mask", "rollout_logprobs"}))

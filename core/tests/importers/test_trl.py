"""The dict of ``GRPOTrainer._generate_and_score_completions``, saved with its own names.

Laid out as trl/trainer/grpo_trainer.py of https://github.com/huggingface/trl (v1.16.0) pads it: prompts left with the
pad token, completions right, logprobs with 0.0, ``tool_mask`` with 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcfg.errors import ArtifactError
from xcfg.importers.formats import npz
from xcfg.importers.trl import Trl
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

PAD = 99


def batch() -> dict[str, Any]:
    """Three completions: 4 tokens with a tool's answer of 2; 2 tokens, one of which is the pad token; one truncated."""
    return {
        "prompt_ids": np.array([[PAD, 11, 12], [21, 22, 23], [PAD, PAD, 31]]),
        "prompt_mask": np.array([[0, 1, 1], [1, 1, 1], [0, 0, 1]]),
        "completion_ids": np.array([[41, 42, 43, 44], [51, PAD, PAD, PAD], [61, 62, 63, 64]]),
        "completion_mask": np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]),
        "advantages": np.array([0.5, -0.5, 0.0], dtype=np.float32),
        "num_items_in_batch": np.array(4),
        "tool_mask": np.array([[1, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]]),
        "sampling_per_token_logps": np.array(
            [[-0.25, 0.0, 0.0, -0.5], [-0.75, -1.0, 0.0, 0.0], [-1.0, -1.0, -1.0, -1.0]], dtype=np.float32
        ),
        "old_per_token_logps": np.array(
            [[-0.375, -7.0, -8.0, -0.5], [-0.75, -1.25, -9.0, -9.0], [-2.0, -2.0, -2.0, -2.0]], dtype=np.float32
        ),
        "importance_sampling_ratio": np.ones((3, 1), dtype=np.float32),
    }


def records(tmp_path: Path, data: dict[str, Any], role: Role) -> list[Record]:
    np.savez(tmp_path / "step.npz", **data)
    return list(Trl().records(npz.read(tmp_path / "step.npz"), role))


def test_a_tools_answer_stays_in_the_completion_and_is_masked_out(tmp_path: Path) -> None:
    one = records(tmp_path, batch(), Role.ROLLOUT)[0]
    assert one.prompt_ids is not None and one.mask is not None
    assert one.id == "row 0"
    assert one.prompt_ids.tolist() == [11, 12]
    assert one.response_ids.tolist() == [41, 42, 43, 44]
    assert one.logprobs.tolist() == [-0.25, 0.0, 0.0, -0.5]
    assert one.logprobs.dtype == np.float32
    assert one.mask.tolist() == [True, False, False, True]
    assert one.assumed == ("id",)
    assert one.place == "step.npz sample 0"
    assert (one.position_ids, one.rank, one.top_logprobs, one.dtype) == (None, None, None, "")
    assert one.weight_versions == () and dict(one.semantics) == {}


def test_the_mask_and_not_the_pad_token_says_where_padding_is(tmp_path: Path) -> None:
    two = records(tmp_path, batch(), Role.TRAINING)[1]
    assert two.prompt_ids is not None and two.mask is not None
    assert two.prompt_ids.tolist() == [21, 22, 23]
    assert two.response_ids.tolist() == [51, PAD]
    assert two.logprobs.tolist() == [-0.75, -1.25]
    assert two.mask.tolist() == [True, True]


def test_a_masked_truncated_completion_is_kept_without_tokens(tmp_path: Path) -> None:
    three = records(tmp_path, batch(), Role.TRAINING)[2]
    assert three.prompt_ids is not None
    assert three.id == "row 2"
    assert three.prompt_ids.tolist() == [31]
    assert three.response_ids.size == three.logprobs.size == 0


def test_without_tools_every_token_of_a_completion_is_active(tmp_path: Path) -> None:
    data = batch()
    del data["tool_mask"]
    assert [record.mask for record in records(tmp_path, data, Role.ROLLOUT)] == [None, None, None]


def test_rows_count_on_from_one_saved_batch_to_the_next() -> None:
    lines = [
        Row(place=f"step.jsonl line {n}", fields={k: np.asarray(v).tolist() for k, v in batch().items()})
        for n in (1, 2)
    ]
    assert [record.id for record in Trl().records(lines, Role.ROLLOUT)] == [f"row {n}" for n in range(6)]


def test_one_completion_a_row() -> None:
    row = Row(
        place="step.parquet row 0",
        fields={
            "prompt_ids": [PAD, 11],
            "prompt_mask": [0, 1],
            "completion_ids": [41, 42, PAD],
            "completion_mask": [1, 1, 0],
            "sampling_per_token_logps": [-0.25, None, 0.0],
            "old_per_token_logps": [-0.25, -0.5, 0.0],
        },
    )
    (record,) = Trl().records([row], Role.ROLLOUT)
    assert record.response_ids.tolist() == [41, 42]
    assert record.logprobs[0] == -0.25 and np.isnan(record.logprobs[1])
    assert record.place == "step.parquet row 0"


def test_a_logprob_that_vllm_could_not_give_stays_nan(tmp_path: Path) -> None:
    data = batch()
    data["sampling_per_token_logps"][1, 1] = np.nan
    assert np.isnan(records(tmp_path, data, Role.ROLLOUT)[1].logprobs).tolist() == [False, True]


def test_the_completions_log_is_claimed_and_refused() -> None:
    """Columns of completions_00001.parquet: step, prompt, completion, one a reward function, advantage."""
    fields = {"step": 1, "prompt": "6*7?", "completion": "42", "accuracy_reward": 1.0, "advantage": 0.5}
    assert Trl().claims(frozenset(fields))
    for role in Role:
        with pytest.raises(ArtifactError, match=r"completions_00001.parquet row 0.*without logprobs") as caught:
            list(Trl().records([Row(place="completions_00001.parquet row 0", fields=fields)], role))
        for name in ("_generate_and_score_completions", "sampling_per_token_logps", "old_per_token_logps"):
            assert name in str(caught.value)


@pytest.mark.parametrize(
    ("role", "name", "setting"),
    [
        (Role.ROLLOUT, "sampling_per_token_logps", "use_vllm=True"),
        (Role.TRAINING, "old_per_token_logps", "vllm_importance_sampling_correction=True"),
    ],
)
def test_a_batch_without_the_sides_logprobs_says_which_setting_gives_them(
    tmp_path: Path, role: Role, name: str, setting: str
) -> None:
    data = batch()
    del data[name]
    with pytest.raises(ArtifactError, match=rf"{name} is missing, so this side has no logprobs.*{setting}"):
        records(tmp_path, data, role)
    other = Role.TRAINING if role is Role.ROLLOUT else Role.ROLLOUT
    assert len(records(tmp_path, data, other)) == 3


def test_masks_must_come_with_the_padded_tokens(tmp_path: Path) -> None:
    for name in ("completion_mask", "prompt_mask"):
        data = batch()
        del data[name]
        with pytest.raises(ArtifactError, match=f"field '{name}' is missing"):
            records(tmp_path, data, Role.ROLLOUT)


@pytest.mark.parametrize("name", ["sampling_per_token_logps", "tool_mask", "completion_mask"])
def test_a_field_of_another_width_is_refused(tmp_path: Path, name: str) -> None:
    data = batch()
    data[name] = data[name][:, :3]
    with pytest.raises(ArtifactError, match=f"{name} is 3 wide for 4 padded tokens"):
        records(tmp_path, data, Role.ROLLOUT)


def test_a_hole_in_the_padding_mask_is_refused(tmp_path: Path) -> None:
    data = batch()
    data["completion_mask"][0] = [1, 0, 0, 1]
    with pytest.raises(ArtifactError, match="completion_mask is 0 at 1 between tokens"):
        records(tmp_path, data, Role.ROLLOUT)


def test_it_claims_its_own_layout_only() -> None:
    assert Trl().claims(frozenset(batch()))
    assert not Trl().claims(frozenset({"id", "prompt_ids", "response_ids", "logprobs"}))
    assert not Trl().claims(frozenset({"prompts", "responses", "response_mask"}))
    assert not Trl().claims(frozenset({"content", "input_lengths", "prev_logprobs", "idx"}))

"""Every importer of core against the kit; the records are written down from each layout's own description."""

from __future__ import annotations

import numpy as np

from xcfg.builtin.importers import IMPORTERS
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role
from xcfg.testing import ImporterTests

BY_ID = {item.id: item for item in IMPORTERS}
ROLLOUT = [[-0.5, 0.0, -0.125, -1.5], [-2.0, -0.75]]
TRAINING = [[-0.5, -7.0, -0.25, -1.625], [-2.25, -0.875]]
LOGPROBS = {Role.ROLLOUT: ROLLOUT, Role.TRAINING: TRAINING}
PROMPTS = [[7, 8], [4, 5, 6]]
RESPONSES = [[21, 22, 23, 24], [30, 31]]
MASKS = [[True, False, True, True], [True, True]]
"""The first response has a tool's token in it. The second is the shorter one, so it is padded."""


def record(at: int, role: Role, name: str, **changes: object) -> Record:
    """Sequence ``at``; the names of the layouts are such that no sorting keeps their order."""
    given: dict[str, object] = {
        "id": name,
        "response_ids": np.array(RESPONSES[at]),
        "logprobs": np.array(LOGPROBS[role][at], dtype=np.float32),
        "mask": np.array(MASKS[at]),
        "prompt_ids": np.array(PROMPTS[at]),
    }
    return Record(**(given | changes))  # type: ignore[arg-type]


def floats(values: list[list[float]]) -> np.ndarray:
    return np.array(values, dtype=np.float32)


class TestGeneric(ImporterTests):
    descriptor = BY_ID["generic"]
    logprobs = dict.fromkeys(Role, "logprobs")
    required = ("id", "response_ids")
    names = ("z", "b")

    def rows(self, role):
        return [
            Row(
                place=f"{role.value}.jsonl line {at + 1}",
                fields={
                    "id": self.names[at],
                    "prompt_ids": PROMPTS[at],
                    "response_ids": RESPONSES[at],
                    "logprobs": LOGPROBS[role][at],
                    "mask": MASKS[at],
                    "rank": 3,
                    "weight_version": 12,
                    "temperature": 0.5,
                    "dtype": "bf16",
                },
            )
            for at in range(2)
        ]

    def records(self, role):
        return [
            record(
                at,
                role,
                name,
                logprobs=np.array(LOGPROBS[role][at]),
                rank=3,
                weight_versions=("12",),
                semantics={"temperature": 0.5},
                dtype="bfloat16",
            )
            for at, name in enumerate(self.names)
        ]


class TestVerl(ImporterTests):
    descriptor = BY_ID["verl"]
    logprobs = {Role.ROLLOUT: "rollout_log_probs", Role.TRAINING: "old_log_probs"}
    required = ("prompts", "attention_mask")

    def rows(self, role):
        prompts, responses = np.array([[0, 7, 8], [4, 5, 6]]), np.array([[21, 22, 23, 24], [30, 31, 0, 0]])
        fields = {
            "prompts": prompts,
            "responses": responses,
            "input_ids": np.concatenate([prompts, responses], axis=1),
            "attention_mask": np.array([[0, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]]),
            "position_ids": np.array([[0, 0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 0, 0]]),
            "response_mask": np.array([[1, 0, 1, 1], [1, 1, 0, 0]]),
            "rollout_log_probs": floats([ROLLOUT[0], [*ROLLOUT[1], 0, 0]]),
            "old_log_probs": floats([TRAINING[0], [*TRAINING[1], -9, -9]]),
        }
        return [Row(place="step.npz", fields=fields)]

    def records(self, role):
        sizes = (6, 5)
        return [record(at, role, f"row {at}", position_ids=np.arange(sizes[at]), assumed=("id",)) for at in range(2)]


class TestTrl(ImporterTests):
    descriptor = BY_ID["trl"]
    logprobs = {Role.ROLLOUT: "sampling_per_token_logps", Role.TRAINING: "old_per_token_logps"}
    required = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")

    def rows(self, role):
        fields = {
            "prompt_ids": np.array([[99, 7, 8], [4, 5, 6]]),
            "prompt_mask": np.array([[0, 1, 1], [1, 1, 1]]),
            "completion_ids": np.array([[21, 22, 23, 24], [30, 31, 99, 99]]),
            "completion_mask": np.array([[1, 1, 1, 1], [1, 1, 0, 0]]),
            "tool_mask": np.array([[1, 0, 1, 1], [1, 1, 1, 1]]),
            "sampling_per_token_logps": floats([ROLLOUT[0], [*ROLLOUT[1], 0, 0]]),
            "old_per_token_logps": floats([TRAINING[0], [*TRAINING[1], -9, -9]]),
        }
        return [Row(place="step.npz", fields=fields)]

    def records(self, role):
        return [record(at, role, f"row {at}", assumed=("id",)) for at in range(2)]


class TestNemoRl(ImporterTests):
    descriptor = BY_ID["nemo-rl"]
    logprobs = {Role.ROLLOUT: "generation_logprobs", Role.TRAINING: "prev_logprobs"}
    required = ("token_ids", "token_loss_mask", "input_lengths")

    def rows(self, role):
        tokens = [[7, 8, 21, 22, 23, 24], [4, 5, 6, 30, 31, 0]]
        marks = [[0, 0, 1, 0, 1, 1], [0, 0, 0, 1, 1, 0]]
        return [
            Row(
                place=f"train_data_step3.jsonl line {at + 1}",
                fields={
                    "content": [["..."]],
                    "idx": 9 - at,
                    "input_lengths": [len(PROMPTS[at]) + len(RESPONSES[at])],
                    "token_ids": [tokens[at]],
                    "token_loss_mask": [marks[at]],
                    **{
                        name: [[0.0] * len(PROMPTS[at]) + LOGPROBS[side][at] + [0.0] * at]
                        for side, name in self.logprobs.items()
                    },
                },
            )
            for at in range(2)
        ]

    def records(self, role):
        return [record(at, role, str(9 - at), logprobs=np.array(LOGPROBS[role][at])) for at in range(2)]


class TestSkyRl(ImporterTests):
    descriptor = BY_ID["skyrl"]
    logprobs = {Role.ROLLOUT: "rollout_logprobs", Role.TRAINING: "action_log_probs"}
    required = ("attention_mask", "response_mask")

    def rows(self, role):
        fields = {
            "sequences": np.array([[7, 8, 21, 22, 23, 24], [0, 4, 5, 6, 30, 31]]),
            "attention_mask": np.array([[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]]),
            "response_mask": np.array([[1, 1, 1, 1], [0, 0, 1, 1]]),
            "loss_mask": floats([[1, 0, 1, 1], [0, 0, 1, 1]]),
            "rollout_logprobs": floats([ROLLOUT[0], [0, 0, *ROLLOUT[1]]]),
            "action_log_probs": floats([TRAINING[0], [-3, -4, *TRAINING[1]]]),
        }
        return [Row(place="batch.npz", fields=fields)]

    def records(self, role):
        return [record(at, role, f"row {at}", assumed=("id",)) for at in range(2)]


class TestOpenRlhf(ImporterTests):
    descriptor = BY_ID["openrlhf"]
    logprobs = {Role.ROLLOUT: "rollout_log_probs", Role.TRAINING: "action_log_probs"}
    required = ("sequences", "attention_mask", "action_mask")

    def rows(self, role):
        """Column t is of token t + 1."""
        fields = {
            "sequences": np.array([[7, 8, 21, 22, 23, 24], [4, 5, 6, 30, 31, 0]]),
            "attention_mask": np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]]),
            "action_mask": np.array([[0, 1, 0, 1, 1], [0, 0, 1, 1, 0]], dtype=bool),
            "rollout_log_probs": floats([[0, *ROLLOUT[0]], [0, 0, *ROLLOUT[1], 0]]),
            "action_log_probs": floats([[-9, *TRAINING[0]], [-9, -9, *TRAINING[1], -9]]),
            "index": [9, 4],
        }
        return [Row(place="experience.npz", fields=fields)]

    def records(self, role):
        return [record(at, role, name) for at, name in enumerate(("9", "4"))]


class TestSlime(ImporterTests):
    """The debug dump of each side, which is a file of its own."""

    descriptor = BY_ID["slime"]
    logprobs = {Role.ROLLOUT: "rollout_log_probs", Role.TRAINING: "log_probs"}
    required = ("tokens",)

    def rows(self, role):
        if role is Role.TRAINING:
            data = {
                "tokens": [[*PROMPTS[at], *RESPONSES[at]] for at in range(2)],
                "response_lengths": [4, 2],
                "loss_masks": [[1, 0, 1, 1], [1, 1]],
                "sample_indices": [9, 4],
                "log_probs": TRAINING,
                "rollout_log_probs": ROLLOUT,
            }
            return [Row(place="train_3_0.pt", fields={"rollout_id": 3, "rank": 0, "rollout_data": data})]
        samples = [
            {
                "index": index,
                "tokens": [*PROMPTS[at], *RESPONSES[at]],
                "response_length": len(RESPONSES[at]),
                "loss_mask": [int(flag) for flag in MASKS[at]],
                "rollout_log_probs": ROLLOUT[at],
                "weight_versions": ["12"],
            }
            for at, index in enumerate((9, 4))
        ]
        return [Row(place="rollout_3.pt", fields={"rollout_id": 3, "samples": samples})]

    def records(self, role):
        more = {"rank": 0} if role is Role.TRAINING else {"weight_versions": ("12",)}
        return [
            record(at, role, name, logprobs=np.array(LOGPROBS[role][at]), **more) for at, name in enumerate(("9", "4"))
        ]

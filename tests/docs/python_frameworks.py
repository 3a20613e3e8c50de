"""The recorders on the page of frameworks: run on classes of the same shape, and what they write is compared.

The frameworks are not installed. Each stand-in has what the recorder touches and nothing else. Two samples, of one
prompt token and two, and of two response tokens and one; training is 0.02 below at the very last of the three.
"""

from __future__ import annotations

import shlex
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from .bench import Bench
from .snippets import blocks

ROLLOUT, TRAINING = [[-0.5, -1.0], [-2.0, 0.0]], [[-0.5, -1.0], [-2.02, 0.0]]
PADDED = {
    "prompts": [[0, 11], [12, 13]],
    "responses": [[21, 22], [23, 0]],
    "attention_mask": [[0, 1, 1, 1], [1, 1, 1, 0]],
    "position_ids": [[0, 0, 1, 2], [0, 1, 2, 0]],
    "response_mask": [[1, 1], [1, 0]],
}


def tensors(fields: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(values) for name, values in fields.items()}


def stand_in(bench: Bench, module: str, **names: Any) -> None:
    """A module of this name, with its parents."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        name = ".".join(parts[:length])
        if name not in sys.modules:
            bench.monkeypatch.setitem(sys.modules, name, ModuleType(name))
    vars(sys.modules[module]).update(names)


def compared(bench: Bench, framework: str, *files: str) -> None:
    """Compare what was written by the command on the page, or by that command on other ``files``."""
    texts = [block.text.splitlines()[-1] for block in blocks(bench.page) if block.language == "sh"]
    (line,) = [text for text in texts if f"--format {framework}" in text]
    words = shlex.split(line.replace("$F", "dumped_data/global_step_1_training_input.safetensors"))
    done = bench.xcfg("compare", *(files or words[2:4]), *words[4:], "--json")
    assert done.code == 0, done.out + done.err
    assert done.document["active_tokens"] == 3
    assert abs(done.document["metrics"]["max_abs_dlogp"] - 0.02) < 1e-6
    assert done.document["worst"]["token"] == 23


def verl(bench: Bench) -> None:
    class RayPPOTrainer:
        global_steps = 1

        def _compute_old_log_prob(self, batch):
            return SimpleNamespace(batch={"old_log_probs": torch.tensor(TRAINING)}), 0.5

    stand_in(bench, "verl.trainer.ppo.ray_trainer", RayPPOTrainer=RayPPOTrainer)
    bench.run()
    batch = SimpleNamespace(batch=tensors({**PADDED, "rollout_log_probs": ROLLOUT}))
    result, fraction = RayPPOTrainer()._compute_old_log_prob(batch)
    assert (result.batch["old_log_probs"].tolist(), fraction) == (torch.tensor(TRAINING).tolist(), 0.5)
    compared(bench, "verl")


def verl_v1(bench: Bench) -> None:
    ragged = {
        "prompts": [[11], [12, 13]], "responses": [[21, 22], [23]], "response_mask": [[1, 1], [1]],
        "rollout_log_probs": [ROLLOUT[0], ROLLOUT[1][:1]], "old_log_probs": [TRAINING[0], TRAINING[1][:1]],
    }  # fmt: skip

    def kv_batch_get(*, keys, partition_id, select_fields):
        assert (keys, partition_id) == (["u0", "u1"], "train")
        rows = {name: [torch.tensor(row) for row in ragged[name]] for name in select_fields}
        return {name: torch.nested.nested_tensor(values) for name, values in rows.items()}

    class PPOTrainer:
        global_steps = 2

        def _compute_old_log_prob(self, batch, metrics):
            return batch

    stand_in(bench, "transfer_queue", kv_batch_get=kv_batch_get)
    stand_in(bench, "verl.trainer.ppo.v1.trainer_base", PPOTrainer=PPOTrainer)
    bench.run()
    batch = SimpleNamespace(keys=["u0", "u1"], partition_id="train")
    assert PPOTrainer()._compute_old_log_prob(batch, {}) is batch
    compared(bench, "verl", "step-2.pt", "step-2.pt")


def openrlhf(bench: Bench) -> None:
    fields = tensors(
        {
            "sequences": [[11, 21, 22, 0], [12, 13, 23, 0]],
            "attention_mask": [[1, 1, 1, 0], [1, 1, 1, 0]],
            "action_mask": [[1, 1, 0], [0, 1, 0]],
            "rollout_log_probs": [[-0.5, -1.0, 0.0], [0.0, -2.0, 0.0]],
            "action_log_probs": [[-0.5, -1.0, 0.0], [0.0, -2.02, 0.0]],
            "index": [0, 1],
        }
    )

    class RemoteExperienceMaker:
        def make_experience(self, samples):
            return [SimpleNamespace(**fields, advantages=None)]

    stand_in(bench, "openrlhf.trainer.ppo_utils.experience_maker", RemoteExperienceMaker=RemoteExperienceMaker)
    bench.run()
    assert len(RemoteExperienceMaker().make_experience([])) == 1
    compared(bench, "openrlhf")


def trl(bench: Bench) -> None:
    made = {
        "prompt_ids": PADDED["prompts"], "prompt_mask": [[0, 1], [1, 1]],
        "completion_ids": PADDED["responses"], "completion_mask": PADDED["response_mask"],
        "sampling_per_token_logps": ROLLOUT, "old_per_token_logps": TRAINING,
    }  # fmt: skip

    class GRPOTrainer:
        args = SimpleNamespace(output_dir=".")
        model = SimpleNamespace(training=True)
        accelerator = SimpleNamespace(process_index=0)

        def _generate_and_score_completions(self, inputs):
            return {**tensors(made), "num_items_in_batch": 3}

    stand_in(bench, "trl", GRPOTrainer=GRPOTrainer)
    trainer = bench.run()["RecordingTrainer"]()
    assert trainer._generate_and_score_completions([])["num_items_in_batch"] == 3
    compared(bench, "trl")


def skyrl(bench: Bench) -> None:
    class RayPPOTrainer:
        cfg = SimpleNamespace(trainer=SimpleNamespace(export_path="."))

        def dump_data(self, data, file_name):
            raise NotImplementedError

    stand_in(bench, "skyrl.train.entrypoints.main_base", BasePPOExp=type("BasePPOExp", (), {}))
    stand_in(bench, "skyrl.train.trainer", RayPPOTrainer=RayPPOTrainer)
    trainer = bench.run()["Experiment"]().get_trainer()
    batch = {
        "sequences": [[0, 11, 21, 22], [12, 13, 23, 0]], "attention_mask": PADDED["attention_mask"],
        "response_mask": PADDED["response_mask"], "loss_mask": PADDED["response_mask"],
        "rollout_logprobs": ROLLOUT, "action_log_probs": TRAINING,
    }  # fmt: skip
    trainer.dump_data({**tensors(batch), "rewards": None}, "global_step_1_training_input")
    compared(bench, "skyrl")


def frameworks(bench: Bench) -> None:
    """In the order of the page."""
    for recorder in (verl, verl_v1, openrlhf, trl, skyrl):
        recorder(bench)

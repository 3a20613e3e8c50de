"""Core's own importers and file formats: what reads recorded logprobs of other frameworks."""

from __future__ import annotations

from xcfg.model.importer import FileFormatDescriptor, ImporterDescriptor

_MODULE = "xcfg.importers"

IMPORTERS = (
    ImporterDescriptor(
        id="generic",
        summary="one record a sequence: id, response_ids, logprobs and what else is known",
        target=f"{_MODULE}.generic:GenericImporter",
        note="the format of this project; rename the columns of any other layout with --map",
    ),
    ImporterDescriptor(
        id="verl",
        summary="verl: the tensors of a DataProto, saved after old_log_probs was recomputed",
        target=f"{_MODULE}.verl:Verl",
        both_sides=True,
        note="rollout_data_dir and validation_data_dir hold texts only, DataProto.save_to_disk writes a pickle",
        sources=(
            "https://github.com/volcengine/verl/blob/main/verl/experimental/agent_loop/agent_loop.py",
            "https://verl.readthedocs.io/en/latest/algo/rollout_corr.html",
        ),
    ),
    ImporterDescriptor(
        id="trl",
        summary="TRL: a saved GRPOTrainer batch",
        target=f"{_MODULE}.trl:Trl",
        both_sides=True,
        note="the completions log (completions_*.parquet) holds texts only; ids and logprobs are in the dict of "
        "GRPOTrainer._generate_and_score_completions",
        sources=(
            "https://github.com/huggingface/trl/blob/v1.16.0/trl/trainer/grpo_trainer.py",
            "https://huggingface.co/docs/trl/grpo_trainer",
        ),
    ),
    ImporterDescriptor(
        id="nemo-rl",
        summary="NeMo RL: train_data_step{N}.jsonl",
        target=f"{_MODULE}.nemo_rl:NemoRl",
        both_sides=True,
        note="GRPO writes it at every step; logs without token_ids, and prev_logprobs of force_on_policy_ratio, are "
        "refused",
        sources=(
            "https://github.com/NVIDIA-NeMo/RL/blob/main/nemo_rl/algorithms/grpo.py",
            "https://github.com/NVIDIA-NeMo/RL/blob/main/nemo_rl/utils/logger.py",
        ),
    ),
    ImporterDescriptor(
        id="skyrl",
        summary="SkyRL: a saved TrainingInputBatch or GeneratorOutput",
        target=f"{_MODULE}.skyrl:SkyRl",
        both_sides=True,
        note="dump_data_batch writes a pickle, which is refused, and dump_eval_results texts",
        sources=(
            "https://github.com/NovaSky-AI/SkyRL/blob/main/skyrl/train/trainer.py",
            "https://github.com/NovaSky-AI/SkyRL/blob/main/skyrl/backends/skyrl_train/training_batch.py",
        ),
    ),
    ImporterDescriptor(
        id="openrlhf",
        summary="OpenRLHF: the tensors of an Experience",
        target=f"{_MODULE}.openrlhf:OpenRlhf",
        both_sides=True,
        note="OpenRLHF writes no logprobs to disk by itself",
        sources=("https://github.com/OpenRLHF/OpenRLHF/blob/main/openrlhf/trainer/ppo_utils/experience.py",),
    ),
    ImporterDescriptor(
        id="slime",
        summary="slime: --save-debug-rollout-data and --save-debug-train-data",
        target=f"{_MODULE}.slime:Slime",
        both_sides=True,
        note="add --get-mismatch-metrics, so that log_probs are those before the update",
        sources=(
            "https://github.com/THUDM/slime/blob/main/slime/ray/rollout.py",
            "https://github.com/THUDM/slime/blob/main/docs/en/developer_guide/debug.md",
        ),
    ),
)
"""Importers by framework; ``generic`` is the project's own layout."""

_FORMATS = f"{_MODULE}.formats"

FILE_FORMATS = (
    FileFormatDescriptor(
        id="jsonl",
        summary="one JSON object a line",
        suffixes=(".jsonl", ".jsonl.gz", ".ndjson"),
        target=f"{_FORMATS}.jsonl:read",
    ),
    FileFormatDescriptor(
        id="json",
        summary="an array of objects, or an object of columns",
        suffixes=(".json",),
        target=f"{_FORMATS}.json_file:read",
    ),
    FileFormatDescriptor(
        id="parquet",
        summary="Apache Parquet, lists a sequence",
        suffixes=(".parquet",),
        target=f"{_FORMATS}.parquet:read",
        requires=("pyarrow",),
        install='python -m pip install "xcfg[parquet]"',
    ),
    FileFormatDescriptor(
        id="npz",
        summary="numpy arrays, without pickled objects",
        suffixes=(".npz",),
        target=f"{_FORMATS}.npz:read",
    ),
    FileFormatDescriptor(
        id="safetensors",
        summary="safetensors, with text in its metadata",
        suffixes=(".safetensors",),
        target=f"{_FORMATS}.safetensors_file:read",
    ),
)
"""Containers that core opens by itself."""

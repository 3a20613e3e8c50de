"""What a tensor is stored in between operations."""

from __future__ import annotations

from xcfg.builtin.domains import compute_dtype, name, storage_dtype
from xcfg.builtin.knobs.declare import ROLLOUT_ENGINE, TRAINING_ENGINE, declare
from xcfg.model.knob import SourceClass
from xcfg.model.weights import WEIGHTS

REPRESENTATION = (
    declare(
        "rollout.kv_cache_dtype",
        "Dtype in which the rollout engine stores keys and values",
        SourceClass.REPRESENTATION,
        ROLLOUT_ENGINE,
        storage_dtype(),
        None,
        (2, 1, 0),
        {"rollout.kv_cache_dtype": None},
    ),
    declare(
        "training.output_dtype",
        "Dtype in which the training engine hands on its logits; null is the compute dtype",
        SourceClass.REPRESENTATION,
        TRAINING_ENGINE,
        compute_dtype(optional=True),
        None,
        (1, 1, 0),
        {"training.output_dtype": "float32"},
    ),
    declare(
        WEIGHTS,
        "Copy of the checkpoint that the rollout engine loads, by its name under `derived`; null is the checkpoint",
        SourceClass.REPRESENTATION,
        ROLLOUT_ENGINE,
        name(optional=True),
        None,
        (2, 1, 1),
        {WEIGHTS: None},
    ),
    declare(
        "rollout.quantization",
        "How the rollout engine quantises its weights; null is what the checkpoint says",
        SourceClass.REPRESENTATION,
        ROLLOUT_ENGINE,
        name(optional=True),
        None,
        (2, 1, 1),
        {"rollout.quantization": None},
    ),
)
"""Knobs of the source class ``representation``."""

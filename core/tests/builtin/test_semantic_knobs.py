from __future__ import annotations

import pytest

from xcfg.builtin.knobs import KNOBS
from xcfg.model.knob import Lifecycle, SourceClass, Target
from xcfg.testing import KnobTests

ROLLOUT, TRAINING, BOTH, KERNEL = Target.ROLLOUT, Target.TRAINING, Target.BOTH, Target.KERNEL
ENGINE, REQUEST, PROCESS, BUILD = Lifecycle.ENGINE, Lifecycle.REQUEST, Lifecycle.PROCESS, Lifecycle.BUILD
ARITHMETIC, REDUCTION, REPRESENTATION = SourceClass.ARITHMETIC, SourceClass.REDUCTION, SourceClass.REPRESENTATION
EXECUTION, LOGICAL = SourceClass.EXECUTION, SourceClass.LOGICAL

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}
STORAGE = {**DTYPES, "fp8": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2", None: None}
COUNT = {1: 1, 64: 64}
NOT_A_COUNT = (0, -1, 1.0, True, "2", None)
NAME = {"CPU_ATTN": "CPU_ATTN", None: None}
SWITCH = {True: True, False: False}
NOT_A_SWITCH = (1, "true", None)

TABLE = {
    "rollout.tensor_parallel_size": (ROLLOUT, ENGINE, REDUCTION, 1, COUNT, NOT_A_COUNT),
    "rollout.dtype": (ROLLOUT, ENGINE, ARITHMETIC, "bfloat16", DTYPES, ("fp8", "bfloat", 16, None)),
    "rollout.kv_cache_dtype": (ROLLOUT, ENGINE, REPRESENTATION, None, STORAGE, ("auto", 8)),
    "rollout.attention_backend": (ROLLOUT, ENGINE, ARITHMETIC, None, NAME, (1, True)),
    "rollout.enforce_eager": (ROLLOUT, ENGINE, ARITHMETIC, None, {True: True, False: False, None: None}, (1, "true")),
    "rollout.scoring_path": (
        ROLLOUT,
        REQUEST,
        EXECUTION,
        "forced_decode",
        {"forced_decode": "forced_decode", "prefill": "prefill"},
        ("decode", None),
    ),
    "execution.prefix_cache": (ROLLOUT, ENGINE, EXECUTION, False, {True: True, False: False}, (0, "off")),
    "sampling.logprobs_mode": (
        ROLLOUT,
        ENGINE,
        LOGICAL,
        "raw_logprobs",
        {"processed_logprobs": "processed_logprobs"},
        ("raw", None),
    ),
    "sampling.temperature": (ROLLOUT, REQUEST, LOGICAL, 1.0, {1: 1.0, 0.5: 0.5}, (0, -1.0, float("nan"), "1", None)),
    "execution.threads": (BOTH, PROCESS, EXECUTION, 1, COUNT, NOT_A_COUNT),
    "batch.size": (BOTH, REQUEST, REDUCTION, 8, COUNT, NOT_A_COUNT),
    "batch.micro_size": (TRAINING, REQUEST, REDUCTION, None, {**COUNT, None: None}, (0, 1.5)),
    "layout.padding_side": (BOTH, REQUEST, LOGICAL, "right", {"left": "left", "right": "right"}, ("middle", None)),
    "training.attention_backend": (TRAINING, ENGINE, ARITHMETIC, "sdpa", {"eager": "eager", None: None}, (1,)),
    "training.compute_dtype": (TRAINING, ENGINE, ARITHMETIC, "bfloat16", DTYPES, ("fp8", None)),
    "training.output_dtype": (TRAINING, ENGINE, REPRESENTATION, None, {**DTYPES, None: None}, ("fp8",)),
    "training.sharding": (
        TRAINING,
        ENGINE,
        REDUCTION,
        "unsharded",
        {"unsharded": "unsharded", "full_shard": "full_shard", "hybrid": "hybrid"},
        ("FULL_SHARD", None),
    ),
    "training.world_size": (TRAINING, ENGINE, REDUCTION, 1, COUNT, NOT_A_COUNT),
    "training.reduce_dtype": (TRAINING, ENGINE, REDUCTION, None, {**DTYPES, None: None}, ("fp8",)),
    "rollout.weights": (ROLLOUT, ENGINE, REPRESENTATION, None, {"int8": "int8", None: None}, (8, True)),
    "rollout.quantization": (ROLLOUT, ENGINE, REPRESENTATION, None, {"fp8": "fp8", None: None}, (8, True)),
    "rollout.chunked_prefill": (ROLLOUT, ENGINE, EXECUTION, None, {**SWITCH, None: None}, (0, "off")),
    "sampling.top_p": (ROLLOUT, REQUEST, LOGICAL, 1.0, {1: 1.0, 0.9: 0.9}, (0.0, 1.1, float("nan"), None)),
    "sampling.top_k": (ROLLOUT, REQUEST, LOGICAL, 0, {0: 0, 50: 50}, (-1, 1.0, True, None)),
    "execution.max_num_seqs": (ROLLOUT, ENGINE, EXECUTION, None, {**COUNT, None: None}, (0, 1.5)),
    "execution.compile_mode": (ROLLOUT, ENGINE, ARITHMETIC, None, {"NONE": "NONE", None: None}, (0, False)),
    "execution.collective": (BOTH, ENGINE, REDUCTION, None, {"gloo": "gloo", None: None}, (1,)),
    "layout.packing": (BOTH, REQUEST, LOGICAL, False, SWITCH, NOT_A_SWITCH),
    "layout.position_ids": (
        BOTH,
        REQUEST,
        LOGICAL,
        "sequential",
        {"sequential": "sequential", "padded": "padded"},
        ("shifted", None),
    ),
    "layout.vocab_padding": (BOTH, ENGINE, LOGICAL, 1, {1: 1, 128: 128}, NOT_A_COUNT),
    "training.tensor_parallel_size": (TRAINING, ENGINE, REDUCTION, 1, COUNT, NOT_A_COUNT),
    "training.context_parallel_size": (TRAINING, ENGINE, REDUCTION, 1, COUNT, NOT_A_COUNT),
    "training.compile": (TRAINING, ENGINE, ARITHMETIC, False, SWITCH, NOT_A_SWITCH),
    "logp.deterministic": (KERNEL, REQUEST, ARITHMETIC, False, SWITCH, NOT_A_SWITCH),
    "logp.tp_layout": (
        KERNEL,
        ENGINE,
        REDUCTION,
        "full-vocabulary",
        {"full-vocabulary": "full-vocabulary", "vocab-parallel": "vocab-parallel"},
        ("sharded", None),
    ),
    "logp.reduction_policy": (KERNEL, REQUEST, REDUCTION, "native", {"native": "native"}, (1, None)),
    "kernel.fast_math": (KERNEL, BUILD, ARITHMETIC, None, {**SWITCH, None: None}, (1, "on")),
    "kernel.sm90_path": (KERNEL, BUILD, ARITHMETIC, None, {**SWITCH, None: None}, (1, "on")),
    "logp.backend": (KERNEL, REQUEST, ARITHMETIC, "production", {"reference": "reference"}, (1, None)),
}
"""Target, lifecycle, source class, default, accepted spellings and refused values, as the design states them."""


def test_core_owns_exactly_these_knobs():
    assert sorted(knob.name for knob in KNOBS) == sorted(TABLE)


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_target_lifecycle_class_and_default(knob):
    target, lifecycle, source_class, default, _, _ = TABLE[knob.name]
    found = (knob.targets, knob.lifecycle, knob.source_class, knob.default)
    assert found == (target, lifecycle, source_class, default)


def _checks(knob):
    attributes = {"knob": knob, "accepted": TABLE[knob.name][4], "refused": TABLE[knob.name][5]}
    name = "Test_" + knob.name.replace(".", "_")
    return name, type(name, (KnobTests,), {**attributes, "__module__": __name__})


globals().update(dict(_checks(knob) for knob in KNOBS))

from __future__ import annotations

import hashlib
import random
from typing import Any

PROMPTS = b'{"id": "p0", "text": "hello"}\n'


def pinned(dtype: str) -> str:
    """The id of a case of the minimal experiment, from RFC 8785 text written out by hand."""
    text = (
        '{"contract":{"digest":"' + "d" * 64 + '","id":"ws1","version":"v"},'
        '"rollout":{"checkpoint":{"path":"model","revision":"","trust_remote_code":false,"weight_version":""},'
        '"knobs":{"batch.size":8,"execution.prefix_cache":false,"rollout.dtype":"' + dtype + '",'
        '"rollout.tensor_parallel_size":1,"sampling.temperature":1},'
        '"operators":{},"role":"rollout","scorer":"eng"},'
        '"tokens":{"sample":{"ignore_eos":false,"max_new_tokens":64,"prompts":"prompts.jsonl","seed":0,'
        '"temperature":1,"top_k":0,"top_p":1},"sha256":"' + hashlib.sha256(PROMPTS).hexdigest() + '"},'
        '"training":{"checkpoint":{"path":"model","revision":"","trust_remote_code":false,"weight_version":""},'
        '"knobs":{"batch.size":8,"layout.padding_side":"right","logp.backend":"production",'
        '"training.compute_dtype":"bfloat16","training.sharding":"unsharded"},'
        '"operators":{"selected_logprob":{"backend":"production","options":{}}},'
        '"role":"training","scorer":"trainer"}}'
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_ids_are_the_hash_of_what_is_compared(bench: Any) -> None:
    plan = bench.plan(bench.experiment(axes={"rollout.dtype": ["fp32"]}))
    assert [case.id for case in plan.cases] == [pinned("bfloat16"), pinned("float32")]


def shuffled(data: Any, seed: int) -> Any:
    if isinstance(data, dict):
        keys = list(data)
        random.Random(seed).shuffle(keys)
        return {key: shuffled(data[key], seed) for key in keys}
    return data


def test_ids_do_not_depend_on_key_order_or_on_the_name(bench: Any) -> None:
    content = bench.minimal(
        baseline={"rollout.dtype": "bf16", "batch.size": 4, "training.sharding": "full_shard"},
        axes={"rollout.dtype": ["bf16", "fp32"], "batch.size": [4, 1], "training.compute_dtype": ["fp16"]},
        cases=[{"name": "both", "set": {"rollout.dtype": "fp32", "training.compute_dtype": "fp32"}}],
    )
    usual = {case.id for case in bench.plan(bench.load(content).experiment).cases}
    assert len(usual) == 5
    for seed in range(5):
        other = shuffled({**content, "name": f"renamed {seed}"}, seed)
        assert {case.id for case in bench.plan(bench.load(other).experiment).cases} == usual


def test_naming_a_default_changes_no_id(bench: Any) -> None:
    named = bench.experiment(baseline={"rollout.dtype": "bf16", "layout.padding_side": "right", "eng.seed": None})
    assert bench.plan(named).baseline == bench.plan().baseline


def test_changed_prompts_change_every_id(bench: Any) -> None:
    before = bench.plan()
    (bench.root / "prompts.jsonl").write_bytes(PROMPTS + b'{"id": "p1", "text": "x"}\n')
    after = bench.plan()
    assert before.baseline != after.baseline
    assert before.tokens["sha256"] == hashlib.sha256(PROMPTS).hexdigest()


def test_sampling_and_checkpoint_enter_the_id(bench: Any) -> None:
    ids = {
        bench.plan(bench.experiment(**changes)).baseline
        for changes in (
            {},
            {"tokens": {"sample": {"prompts": "prompts.jsonl", "seed": 1}}},
            {"tokens": {"recorded": "prompts.jsonl"}},
            {"checkpoint": {"path": "model", "weight_version": "7"}},
            {"checkpoint": {"path": "model", "trust_remote_code": True}},
            {"training": {"scorer": "trainer", "checkpoint": {"path": "model", "revision": "r"}}},
        )
    }
    assert len(ids) == 6


def test_operator_options_enter_the_id(bench: Any) -> None:
    ids = set()
    for options in ({}, {"block": 16}, {"block": 32}):
        chosen = {"selected_logprob": {"training": {"backend": "production", "options": options}}}
        ids.add(bench.plan(bench.experiment(operators=chosen)).baseline)
    assert len(ids) == 3
    assert bench.plan().baseline in ids

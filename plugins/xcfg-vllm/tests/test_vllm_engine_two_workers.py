"""The child process of a real run on two workers: it samples, scores on both paths, and loses a worker."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file

from xcfg.model.case import SideConfig
from xcfg.model.codec import dump_json
from xcfg.model.experiment import Checkpoint, SampleSource
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import Launch, Role
from xcfg.plugin import Prompt
from xcfg.plugin.executor import Ending, Job, Limits
from xcfg.plugin.registry import load_registry
from xcfg.runner.environment import LAUNCH, declared_environment
from xcfg.runner.launch import KnobTask, LaunchSpec, OperatorTask, SampleTask, Step
from xcfg.runner.launching import run_launch
from xcfg_vllm.capabilities import cpu_flags
from xcfg_vllm.materializers import MATERIALIZERS

pytestmark = pytest.mark.engine
pytest.importorskip("vllm", reason="vllm is not installed")

KNOBS = {
    "rollout.tensor_parallel_size": 2,
    "rollout.dtype": "bfloat16",
    "rollout.kv_cache_dtype": None,
    "rollout.attention_backend": None,
    "rollout.enforce_eager": True,
    "execution.prefix_cache": False,
    "execution.threads": 1,
    "sampling.logprobs_mode": "raw_logprobs",
    "sampling.temperature": 1.0,
    "vllm.seed": 11,
    "vllm.block_size": 64,
    "vllm.kv_cache_blocks": 40,
    "vllm.max_model_len": 192,
    "execution.max_num_seqs": 16,
    "execution.collective": None,
    "vllm.max_num_batched_tokens": 512,
}
STEPS = (
    ("forced_decode", 4, ""),
    ("prefill", 4, ""),
    ("forced_decode", 1, ""),
    ("forced_decode", 4, "xcfg_kernels.production:Production"),
    ("prefill", 4, "xcfg_kernels.production:Production"),
    ("forced_decode", 4, "xcfg_kernels.deterministic:Deterministic"),
    ("forced_decode", 4, "xcfg.testing.backends:PoisonedBackend"),
    ("forced_decode", 2, ""),
)
"""Scoring path, batch size and kernel backend of each side run; a worker is killed during the last."""
OWN = range(3)
"""Side runs whose logprobs are vLLM's own."""
POISONED = 6
"""The side run of nothing but NaN."""

PROMPTS = tuple(Prompt(id=f"p{index}", text="a prompt of its own length"[: 5 + 3 * index]) for index in range(6))
NEW_TOKENS = 24
REPORTED_WITHIN_S = 30.0


def _tasks(values):
    rows = {item.knob: item for item in MATERIALIZERS}
    return tuple(
        KnobTask(name=name, value=value, target=rows[name].target, lifecycle=rows[name].lifecycle)
        for name, value in values.items()
    )


def _operators(target: str) -> tuple[OperatorTask, ...]:
    asked = OperatorTask(operator="selected_logprob", backend=target.rpartition(":")[2].lower(), target=target)
    return (asked,) if target else ()


class _Launch:
    """One run of the child: what its steps left, when the worker was killed, what was still there afterwards."""

    def __init__(self, checkpoint: Path, folder: Path) -> None:
        self.folder = folder
        self.killed_at = 0.0
        self.workers = 0
        side = [{**KNOBS, "rollout.scoring_path": path, "batch.size": size} for path, size, _ in STEPS]
        spec = LaunchSpec(
            role=Role.ROLLOUT,
            scorer="vllm",
            target="xcfg_vllm.scorer:VllmScorer",
            launch=Launch.SINGLE,
            world_size=1,
            requires=("vllm",),
            checkpoint=str(checkpoint),
            engine=[task for task in _tasks(side[0]) if task.lifecycle is not Lifecycle.REQUEST],
            steps=[
                Step(folder=str(self.step(number)), knobs=_tasks(values), operators=_operators(STEPS[number][2]))
                for number, values in enumerate(side)
            ],
            sample=SampleTask(
                folder=str(folder / "tokens"),
                prompts=PROMPTS,
                source=SampleSource(prompts="", max_new_tokens=NEW_TOKENS, seed=5, ignore_eos=True),
            ),
            repeat=2,
            folder=str(folder),
            facts=("vllm",),
        )
        for place in (folder / "logs", folder / "tokens", *(self.step(number) for number in range(len(STEPS)))):
            place.mkdir(parents=True)
        (folder / "spec.json").write_text(dump_json(spec))
        config = SideConfig(
            role=Role.ROLLOUT, scorer="vllm", checkpoint=Checkpoint(path=str(checkpoint)), knobs=side[0]
        )
        self.environment = declared_environment(config, load_registry(), f"test-{os.getpid()}-{time.time()}")
        job = Job(
            root=str(folder.parent),
            folder=folder.name,
            inputs=(),
            launch=Launch.SINGLE,
            ranks=1,
            environment=self.environment,
            limits=Limits(start=300.0, score=300.0, stop=60.0),
        )
        self.ended = run_launch(job, self._watch, threading.Event())
        self.ended_at = time.time()
        self.left = list(self._processes())

    def step(self, number: int) -> Path:
        return self.folder / f"step-{number:04d}"

    def record(self, number: int) -> dict:
        path = self.step(number) / "rank-00000.json"
        assert path.exists(), (self.folder / "logs" / "stderr.log").read_text()[-3000:]
        return json.loads(path.read_text())

    def samples(self, number: int) -> dict[str, np.ndarray]:
        return load_file(self.step(number) / "rank-00000.safetensors")

    def _watch(self) -> None:
        """Kill the second worker once all but the last side run are on disk."""
        if not self.killed_at and (self.step(len(STEPS) - 2) / "rank-00000.json").exists():
            workers = self._workers()
            self.workers = len(workers)
            self.killed_at = time.time()
            os.kill(workers[-1].pid, signal.SIGKILL)

    def _workers(self) -> list[psutil.Process]:
        """The workers by rank: they carry the launch's mark, though vLLM gives them a title of its own."""
        titles = {process: " ".join(process.cmdline()) for process in self._processes()}
        return sorted((process for process in titles if "Worker" in titles[process]), key=titles.__getitem__)

    def _processes(self):
        for process in psutil.process_iter():
            try:
                if process.environ().get(LAUNCH) == self.environment[LAUNCH]:
                    yield process
            except psutil.Error:
                continue


@pytest.fixture(scope="module")
def launch(checkpoint, tmp_path_factory) -> _Launch:
    return _Launch(checkpoint, tmp_path_factory.mktemp("two-workers") / "launch")


@pytest.fixture(scope="module")
def sampled(launch) -> dict:
    return json.loads((launch.folder / "tokens" / "sampled-00000.json").read_text())


def test_one_response_a_prompt(sampled) -> None:
    assert sampled["ids"] == [prompt.id for prompt in PROMPTS]
    # one token a byte: the tokenizer's ids are the places of the byte alphabet in sorted order
    assert [len(row) for row in sampled["prompts"]] == [len(prompt.text) for prompt in PROMPTS]
    assert [len(row) for row in sampled["responses"]] == [NEW_TOKENS] * len(PROMPTS)
    assert len({tuple(row) for row in sampled["responses"]}) == len(PROMPTS)
    assert all(all(row) for row in sampled["action_masks"])


@pytest.mark.parametrize("step", range(len(STEPS) - 1))
def test_tokens_positions_and_masks_are_the_batchs(launch, sampled, step) -> None:
    arrays = launch.samples(step)
    rows = [[*prompt, *response] for prompt, response in zip(sampled["prompts"], sampled["responses"], strict=True)]
    assert arrays["sequence"].tolist() == list(range(len(rows)))
    assert arrays["rank"].tolist() == [0] * len(rows)
    assert arrays["prompt_length"].tolist() == [len(row) for row in sampled["prompts"]]
    assert arrays["response_length"].tolist() == [NEW_TOKENS] * len(rows)
    assert arrays["input_ids"].tolist() == [token for row in rows for token in row]
    assert arrays["position_ids"].tolist() == [place for row in rows for place in range(len(row))]
    assert arrays["action_mask"].all()


def test_forced_decoding_reproduces_the_sampled_run_bit_by_bit(launch, sampled) -> None:
    reported = np.concatenate([np.float32(row) for row in sampled["sampled_logprobs"]])
    assert (reported < 0).all()
    assert launch.samples(0)["logprobs"].tobytes() == reported.tobytes()


def within_the_contract(one: np.ndarray, two: np.ndarray) -> None:
    """Bitwise on one thread a worker where it was measured; what is promised is the contract's bf16 limit."""
    limit = load_registry().contract("ws1").max_abs_dlogp["bfloat16"]
    np.testing.assert_allclose(one, two, rtol=0, atol=limit)


def test_prefill_agrees_with_decoding(launch) -> None:
    within_the_contract(launch.samples(1)["logprobs"], launch.samples(0)["logprobs"])


def test_batches_of_one_agree_with_batches_of_four(launch) -> None:
    within_the_contract(launch.samples(2)["logprobs"], launch.samples(0)["logprobs"])


@pytest.mark.parametrize(("step", "own"), [(3, 0), (4, 1)], ids=["decode", "prefill"])
def test_a_backend_of_the_same_operations_gives_vllms_own_bits(launch, step, own) -> None:
    # vLLM's sampler and the backend ``production`` both take log_softmax in fp32, then gather
    assert launch.samples(step)["logprobs"].tobytes() == launch.samples(own)["logprobs"].tobytes()
    assert launch.record(step)["operators"]["selected_logprob"]["backend"] == "production"
    assert not any(launch.record(number)["operators"] for number in OWN)


def test_the_deterministic_backend_differs_by_the_rounding_of_its_sums(launch) -> None:
    limit = load_registry().contract("ws1").forward["logprob"]["float32"].atol
    mine, own = (launch.samples(step)["logprobs"] for step in (5, 0))
    np.testing.assert_allclose(mine, own, rtol=0, atol=limit)
    assert launch.record(5)["operators"]["selected_logprob"]["backend"] == "deterministic"


def test_the_logprobs_are_the_backends_own(launch) -> None:
    assert np.isnan(launch.samples(POISONED)["logprobs"]).all()


@pytest.mark.parametrize("step", range(len(STEPS) - 1))
def test_every_value_is_observed(launch, step) -> None:
    path, size, _ = STEPS[step]
    asked = {**KNOBS, "rollout.scoring_path": path, "batch.size": size}
    chosen = {"rollout.kv_cache_dtype": "bfloat16"}
    if _on_cpu():
        shared_memory = "avx512f" in cpu_flags()  # what vLLM's kernels for it are built with
        carrier = "shm" if shared_memory else "gloo"
        chosen |= {"rollout.attention_backend": "CPU_ATTN", "execution.collective": carrier}
    readings = launch.record(step)["knobs"]
    assert {name: reading["materialized"] for name, reading in readings.items()} == asked
    assert not any(reading["unobservable"] for reading in readings.values())
    known = {name: value for name, value in {**asked, **chosen}.items() if value is not None}
    assert {name: readings[name]["observed"] for name in known} == known


def _on_cpu() -> bool:
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu())


@pytest.mark.parametrize("step", range(len(STEPS) - 1))
def test_scoring_changes_no_state(launch, step) -> None:
    record = launch.record(step)
    assert record["state_before"] == record["state_after"] == launch.record(0)["state_before"]


@pytest.mark.parametrize("step", [step for step in range(len(STEPS) - 1) if step != POISONED])
def test_scoring_repeats_bitwise(launch, step) -> None:
    record = launch.record(step)
    assert record["repeats"] == {"count": 2, "bitwise_equal": True, "max_abs_difference": 0.0}


def test_rank_metadata_and_meaning(launch) -> None:
    record = launch.record(0)
    assert record["info"]["parallel"] == {"tp": 2}
    assert record["info"]["compute_dtype"] == "bfloat16"
    assert len(record["info"]["facts"]["workers"]) == 2
    assert [held["uncovered"] for held in record["info"]["facts"]["state"]] == [[], []]
    assert record["semantics"]["mode"] == "raw"
    assert record["semantics"]["vocab_size"] == 256
    assert record["facts"]["vllm"]["vllm"]


def test_a_killed_worker_is_an_error_of_the_scorer_in_time(launch) -> None:
    failed = json.loads((launch.step(len(STEPS) - 1) / "failure-00000.json").read_text())
    assert launch.workers == 2
    assert failed["status"] == "scorer_error"
    assert "WorkerDied" in failed["reason"]
    assert 0 <= failed["at"] - launch.killed_at < REPORTED_WITHIN_S
    assert not (launch.step(len(STEPS) - 1) / "rank-00000.json").exists()


def test_no_process_is_left(launch) -> None:
    assert launch.ended.ending is Ending.EXITED
    assert launch.ended.code == 1
    assert launch.ended_at - launch.killed_at < REPORTED_WITHIN_S
    assert launch.left == []

"""The server path: what is asked of it, and on a real ``vllm serve``, beside the offline engine."""

from __future__ import annotations

import math

import pytest

from xcfg.model.sample import TokenBatch
from xcfg_vllm.cache_watch import ToldCache
from xcfg_vllm.server import flags
from xcfg_vllm.testing.matrix import BASELINE
from xcfg_vllm.testing.play import play

served = pytest.importorskip("xcfg_vllm.served", reason="httpx is not installed")


def engine(test):
    return pytest.mark.engine(pytest.mark.full(test))


def test_keyword_arguments_become_flags() -> None:
    asked = {
        "model": "m",
        "enforce_eager": True,
        "enable_prefix_caching": False,
        "kv_cache_dtype": None,
        "compilation_config": {"mode": "NONE"},
        "logits_processors": ["a:B", "c:D"],
        "seed": 0,
    }
    assert flags(asked) == [
        *("--model", "m"),
        "--enforce-eager",
        "--no-enable-prefix-caching",
        *("--compilation-config", '{"mode": "NONE"}'),
        *("--logits-processors", "a:B", "c:D"),
        *("--seed", "0"),
    ]


def test_an_answer_is_read_as_the_offline_one() -> None:
    """A minus infinity arrives as the server's -9999; tokens without a logprob stay without one."""
    found = {
        "choices": [
            {
                "token_ids": [7, 9],
                "logprobs": {"token_logprobs": [-0.5, -9999.0]},
                "prompt_logprobs": [None, {"3": {"logprob": -1.25, "rank": 1}, "4": {"logprob": -9999.0}}],
            }
        ],
        "usage": {"prompt_tokens_details": {"cached_tokens": 64}},
    }
    answer = served._answer(found)
    assert answer.outputs[0].token_ids == (7, 9)
    assert [entry[token].logprob for entry, token in zip(answer.outputs[0].logprobs, (7, 9), strict=True)] == [
        -0.5,
        -math.inf,
    ]
    assert answer.prompt_logprobs[0] is None
    assert (answer.prompt_logprobs[1][3].logprob, answer.prompt_logprobs[1][4].logprob) == (-1.25, -math.inf)
    assert answer.num_cached_tokens == 64
    bare = {"choices": [{"token_ids": [7], "logprobs": None}], "usage": {}}
    assert served._answer(bare).outputs[0].logprobs is None
    assert served._answer(bare).num_cached_tokens == 0


def test_counters_of_another_process_are_counted_from_the_reset() -> None:
    told = {"enabled": True, "lookups": 5, "skipped": 1, "hits": 2, "hit_tokens": 64}
    cache = ToldCache(lambda: dict(told))
    cache.reset()
    told.update(lookups=9, hits=3, hit_tokens=96)
    assert cache.facts() == {"enabled": True, "lookups": 4, "skipped": 0, "hits": 1, "hit_tokens": 32}


class _Request:
    def __init__(self, name, together=None) -> None:
        self.request_id = name
        extra = None if together is None else {"xcfg_together": together}
        self.sampling_params = type("Params", (), {"extra_args": extra})()


@pytest.fixture
def scheduler(monkeypatch):
    """The scheduler without an engine; ``added`` is what reaches vLLM's own."""
    told = pytest.importorskip("xcfg_vllm.told_scheduler", reason="vllm is not installed")
    added: list[str] = []
    base = told.Scheduler
    monkeypatch.setattr(base, "add_request", lambda self, request: added.append(request.request_id))
    monkeypatch.setattr(base, "finish_requests", lambda self, ids, status: [])
    made = told.ToldScheduler.__new__(told.ToldScheduler)
    made._held = {}
    made.added = added
    return made


def test_a_batch_is_scheduled_whole_and_in_order(scheduler) -> None:
    scheduler.add_request(_Request("b", ["one", 3, 1]))
    scheduler.add_request(_Request("x", ["two", 2, 0]))
    scheduler.add_request(_Request("c", ["one", 3, 2]))
    scheduler.add_request(_Request("alone"))
    assert scheduler.added == ["alone"]
    scheduler.add_request(_Request("a", ["one", 3, 0]))
    assert scheduler.added == ["alone", "a", "b", "c"]


@pytest.mark.parametrize("ended", ["x", ["x", "z"], None])
def test_a_batch_that_lost_a_request_never_runs(scheduler, ended) -> None:
    scheduler.add_request(_Request("x", ["two", 2, 0]))
    scheduler.finish_requests(ended, "aborted")
    scheduler.add_request(_Request("y", ["two", 2, 1]))
    assert scheduler.added == []


BATCH = TokenBatch(
    ids=["a", "b", "c"],
    prompts=[tuple(range(1, 70)), tuple(range(1, 40)), (9, 8, 7)],
    responses=[(30, 31, 32, 33, 34), (4, 5, 6), (200, 100)],
    action_masks=[(True,) * 5, (True,) * 3, (True,) * 2],
)
STEPS = [
    {"rollout.scoring_path": path, "batch.size": size}
    for path, size in (("forced_decode", 3), ("forced_decode", 1), ("prefill", 3))
]


def _both(folder, checkpoint, **own):
    return [
        play(folder / name, checkpoint, BATCH, {**BASELINE, **own, "vllm.frontend": name}, STEPS)
        for name in ("offline", "server")
    ]


@engine
@pytest.mark.parametrize("ranks", [1, 2])
def test_server_and_offline_give_the_same_bits(checkpoint, tmp_path, ranks) -> None:
    own = {"rollout.tensor_parallel_size": ranks, "execution.max_num_seqs": 8, "vllm.max_num_batched_tokens": 512}
    offline, server = _both(tmp_path, checkpoint, **own)
    assert "error" not in server, server
    for here, there in zip(offline["steps"], server["steps"], strict=True):
        assert there["logprobs"] == here["logprobs"]
        assert there["observed"] == {**here["observed"], "vllm.frontend": "server"}
        assert there["semantics"] == here["semantics"]
    assert server["unchanged"]
    assert server["left"] == 0


@engine
def test_settings_that_vllm_refuses_start_no_server(checkpoint, tmp_path) -> None:
    knobs = {**BASELINE, "vllm.frontend": "server", "execution.max_num_seqs": 8, "vllm.max_num_batched_tokens": 4}
    told = play(tmp_path / "refused", checkpoint, BATCH, knobs, STEPS)
    assert told["error"]["kind"] == "UnsupportedError"
    assert "vLLM refuses" in told["error"]["message"]
    assert told["left"] == 0

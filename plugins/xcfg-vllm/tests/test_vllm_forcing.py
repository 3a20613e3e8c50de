"""Forcing on a sampler written by hand, and the counters of what a worker was given."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("vllm", reason="vllm is not installed")

from vllm.v1.sample.logits_processor import BatchUpdate, MoveDirectionality  # noqa: E402

from xcfg_vllm.forcing import FORCED_IDS, ForcedRows, forcing_sample  # noqa: E402
from xcfg_vllm.grouping import groups  # noqa: E402
from xcfg_vllm.meter import Meter  # noqa: E402


def _params(*ids):
    return SimpleNamespace(extra_args={FORCED_IDS: list(ids)} if ids else None)


def _update(size, *, added=(), removed=(), moved=()):
    return BatchUpdate(batch_size=size, added=list(added), removed=list(removed), moved=list(moved))


def _metadata(rows):
    return SimpleNamespace(logitsprocs=SimpleNamespace(non_argmax_invariant=[object(), rows]))


def _always_nine(logits, metadata):
    """Draws token 9 everywhere; its processed logprobs are the logits themselves."""
    return torch.full((len(logits),), 9), logits.clone()


def test_only_the_ids_are_replaced() -> None:
    rows, emitted = ForcedRows(None, torch.device("cpu"), False), [[], [], []]
    rows.update_state(_update(3, added=[(0, _params(4, 5), [1], emitted[0]), (2, _params(6), [1], emitted[2])]))
    counts: list[int] = []
    sample = forcing_sample(_always_nine, counts.append)
    logits = torch.arange(30.0).reshape(3, 10)
    given = logits.clone()

    ids, processed = sample(given, _metadata(rows))
    assert ids.tolist() == [4, 9, 6]  # the middle row belongs to a request that forces nothing
    assert torch.equal(processed, logits)
    assert torch.equal(rows.apply(given), logits)

    emitted[0].append(4)
    emitted[2].append(6)
    assert sample(given, _metadata(rows))[0].tolist() == [5, 9, 9]  # the last row has used up its ids
    assert counts == [2, 1]


def test_rows_follow_their_requests() -> None:
    rows, emitted = ForcedRows(None, torch.device("cpu"), False), [[], []]
    rows.update_state(_update(2, added=[(0, _params(1), [7], emitted[0]), (1, _params(2), [7], emitted[1])]))
    rows.update_state(_update(2, moved=[(0, 1, MoveDirectionality.SWAP)]))
    assert rows.next_ids() == {0: 2, 1: 1}
    rows.update_state(_update(1, removed=[0], moved=[(1, 0, MoveDirectionality.UNIDIRECTIONAL)]))
    assert rows.next_ids() == {0: 1}
    rows.update_state(_update(1, added=[(0, _params(), [7], [])]))
    assert rows.next_ids() == {}
    assert not rows.is_argmax_invariant()


def _step(scheduled, *, new=(), cached=(), resumed=()):
    return SimpleNamespace(
        num_scheduled_tokens=scheduled,
        scheduled_new_reqs=[
            SimpleNamespace(
                req_id=name,
                prompt_token_ids=[0] * prompt,
                num_computed_tokens=0,
                sampling_params=SimpleNamespace(prompt_logprobs=asked),
                lora_request=SimpleNamespace(lora_path="one") if name == "b" else None,
            )
            for name, prompt, asked in new
        ],
        scheduled_cached_reqs=SimpleNamespace(
            req_ids=[name for name, _ in cached],
            num_computed_tokens=[computed for _, computed in cached],
            resumed_req_ids=set(resumed),
        ),
    )


def test_steps_are_told_apart() -> None:
    meter = Meter()
    meter.saw_step(_step({"a": 5, "b": 4}, new=[("a", 5, None), ("b", 6, 0)]))  # b's prompt is chunked: two are left
    meter.saw_step(_step({"a": 1, "b": 2}, cached=[("a", 5), ("b", 4)]))
    meter.saw_step(_step({"a": 1}, cached=[("a", 6)], resumed=["a"]))
    meter.saw_step(_step({}))
    facts = meter.facts()
    assert {name: facts[name] for name in ("steps", "max_requests", "max_tokens", "decoded", "prefilled")} == {
        "steps": 3,
        "max_requests": 2,
        "max_tokens": 9,
        "decoded": 2,
        "prefilled": 11,
    }
    assert (facts["prompt_scored"], facts["resumed"]) == (1, 1)
    assert facts["adapters"] == ["", "one"]
    meter.reset()
    assert meter.facts()["steps"] == 0


def test_sampling_values_as_the_sampler_got_them() -> None:
    meter, logits = Meter(), torch.zeros(2, 8)
    meter.saw_sampling(logits, {"temperature": [0.7, 0.7], "top_p": None, "top_k": [8, 3], "min_p": [0.1, 0.0]})
    facts = meter.facts()
    assert facts["sampling"] == {"temperature": [0.7], "top_p": [1.0], "top_k": [0, 3], "min_p": [0.0, 0.1]}
    assert facts["columns"] == [8]
    meter.saw_sampling(logits, {"temperature": None, "top_p": None, "top_k": None})
    assert meter.facts()["sampling"]["temperature"] == [0.0, 0.7]  # no temperature is greedy


def test_groups() -> None:
    assert list(groups("abcde", 2)) == [(0, "ab"), (2, "cd"), (4, "e")]
    with pytest.raises(ValueError, match="at least 1"):
        list(groups("abc", 0))

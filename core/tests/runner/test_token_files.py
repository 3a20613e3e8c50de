import json

import pytest
from attrs import evolve

from xcfg.errors import InvalidInput
from xcfg.model.sample import TokenBatch
from xcfg.runner.frozen import freeze_tokens, load_frozen
from xcfg.runner.tokens import batch_lines, read_batch, read_prompts


def _write(path, *records):
    path.write_text("".join(record if isinstance(record, str) else json.dumps(record) + "\n" for record in records))
    return path


def test_a_recorded_batch(tmp_path):
    path = _write(
        tmp_path / "t.jsonl",
        {"id": "a", "prompt_ids": [1, 2], "response_ids": [3], "weight_version": "7"},
        {"id": "ü", "prompt_ids": [4], "response_ids": [5, 6], "mask": [False, True], "weight_version": "7"},
    )
    batch = read_batch(path)
    assert (batch.ids, batch.prompts, batch.responses) == (("a", "ü"), ((1, 2), (4,)), ((3,), (5, 6)))
    assert batch.action_masks == ((True,), (False, True))
    assert (batch.weight_version, batch.sampled_logprobs) == ("7", None)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(batch_lines(batch))
    assert read_batch(copy).digest() == batch.digest()


def test_every_fault_is_named_with_its_line(tmp_path):
    path = _write(
        tmp_path / "t.jsonl",
        {"id": "a", "prompt_ids": [1], "response_ids": [3]},
        "{\n",
        {"id": "a", "prompt_ids": [1], "response_ids": [-3]},
        {"id": "b", "prompt_ids": [1.5], "response_ids": [True]},
        {"id": "c", "prompt_ids": [1], "response_ids": [2], "masks": [True]},
        '{"id": "d", "id": "d", "prompt_ids": [1], "response_ids": [2]}\n',
        {"id": "", "prompt_ids": [1], "response_ids": [2]},
    )
    with pytest.raises(InvalidInput) as found:
        read_batch(path)
    lines = {fault.where.rpartition(":")[2]: fault.message for fault in found.value.faults}
    assert set(lines) == {"2", "3", "4", "5", "6", "7"}
    assert "did you mean 'mask'" in lines["5"]
    assert any("already on line 1" in fault.message for fault in found.value.faults)
    assert any("response_ids[0] is negative" in fault.message for fault in found.value.faults)


def test_one_batch_has_one_weight_version(tmp_path):
    rows = [{"id": name, "prompt_ids": [1], "response_ids": [2], "weight_version": name} for name in "ab"]
    with pytest.raises(InvalidInput, match="one weight_version"):
        read_batch(_write(tmp_path / "t.jsonl", *rows))


def test_a_missing_or_binary_file(tmp_path):
    with pytest.raises(InvalidInput, match="no such file"):
        read_batch(tmp_path / "absent")
    (tmp_path / "b").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="unreadable"):
        read_batch(tmp_path / "b")


def test_prompts_need_text_or_tokens(tmp_path):
    path = _write(tmp_path / "p.jsonl", {"id": "a", "text": "x"}, {"id": "b", "token_ids": [1]}, {"id": "c"})
    with pytest.raises(InvalidInput, match=r"p\.jsonl:3.*text or token_ids"):
        read_prompts(path)


def test_a_sampled_batch_is_frozen_exactly(tmp_path):
    batch = TokenBatch(
        ids=["a", "b"],
        prompts=[[1], [2, 3]],
        responses=[[4, 5], []],
        action_masks=[[True, False], []],
        sampled_logprobs=((-0.1, -1e-300), ()),
        weight_version="3",
    )
    freeze_tokens(tmp_path / "tokens", batch, {"sampler": "me"})
    found = load_frozen(tmp_path / "tokens")
    assert found.digest() == batch.digest()
    assert found.sampled_logprobs == batch.sampled_logprobs
    assert json.loads((tmp_path / "tokens" / "source.json").read_text())["sampler"] == "me"
    assert load_frozen(tmp_path / "nothing") is None


def test_a_sampled_logprob_that_is_no_number_freezes_nothing(tmp_path):
    batch = TokenBatch(ids=["a"], prompts=[[1]], responses=[[2]], action_masks=[[True]])
    with pytest.raises(ValueError, match="JSON compliant"):
        freeze_tokens(tmp_path / "tokens", evolve(batch, sampled_logprobs=((float("nan"),),)), {})
    assert list(tmp_path.iterdir()) == []

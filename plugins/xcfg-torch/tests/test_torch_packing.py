"""Packed rows score what padded ones do, hold each sequence to itself, and show it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from xcfg.errors import UnsupportedError
from xcfg.model.capability import Unobservable
from xcfg.model.sample import TokenBatch
from xcfg_torch.collate import Collation, Part, Step, steps_of_rank
from xcfg_torch.forward_seen import forward_seen
from xcfg_torch.packing import block_causal, mask_for, pack
from xcfg_torch.testing.cases import played
from xcfg_torch.testing.oracle import oracle_logprobs

PACKED = {"layout.packing": True}
BATCH = TokenBatch(ids=["a", "b"], prompts=[[1, 2], [4]], responses=[[3], [5, 6]], action_masks=[[True], [True] * 2])


@pytest.fixture(scope="module")
def oracle(checkpoint, batch):
    return np.concatenate(oracle_logprobs(checkpoint, batch))


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("micro", [None, 2, 1])
def test_packed_rows_agree_with_float64(checkpoint, batch, oracle, attention, micro) -> None:
    knobs = {**PACKED, "training.attention_backend": attention, "batch.micro_size": micro}
    result = played(checkpoint, batch, knobs)
    np.testing.assert_allclose(result.scored[0].samples.logprobs, oracle, rtol=0, atol=2e-5)
    assert result.observed["layout.packing"] is True
    assert (result.observed["batch.size"], result.observed["batch.micro_size"]) == (3, micro or 3)
    assert result.observed["layout.position_ids"] == "sequential"
    assert {rows for rows, _ in result.scored[0].rank.facts["forward_shapes"]} == {1}


def test_packed_tokens_and_positions_come_back(checkpoint, batch) -> None:
    samples = played(checkpoint, batch, PACKED).scored[0].samples
    for row in range(samples.rows):
        tokens = [*batch.prompts[row], *batch.responses[row]]
        assert samples.input_ids[samples.input_slice(row)].tolist() == tokens
        assert samples.position_ids[samples.input_slice(row)].tolist() == list(range(len(tokens)))


def test_a_row_by_hand() -> None:
    (step,) = steps_of_rank(
        [3, 3], Collation(size=2, micro=None, padding_side="right", packed=True), rank=0, world_size=1
    )
    assert step == Step(batch=0, rows=(0, 1), width=6, part=Part.OWN)
    row = pack(BATCH, step, device=torch.device("cpu"))
    assert row.input_ids.tolist() == [[1, 2, 3, 4, 5, 6]]
    assert row.position_ids.tolist() == [[0, 1, 2, 0, 1, 2]]
    assert row.response.tolist() == [[False, False, True, False, True, True]]
    assert block_causal(row.blocks)[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        [0, 0, 0, 1, 1, 0],
        [0, 0, 0, 1, 1, 1],
    ]


def test_micro_batches_are_rows_of_their_own() -> None:
    collation = Collation(size=3, micro=2, padding_side="right", packed=True)
    steps = steps_of_rank([3, 9, 4, 5], collation, rank=0, world_size=1)
    assert [(step.rows, step.width) for step in steps] == [((0, 1), 12), ((2,), 4), ((3,), 5)]


def _seen(mask, positions=((0, 1, 0, 1),)):
    return forward_seen(torch.zeros((1, 4), dtype=torch.int64), mask, torch.tensor(positions))


def test_blocks_are_told_from_a_mask_over_all() -> None:
    apart = block_causal(torch.tensor([[0, 0, 1, 1]]))
    assert (_seen(apart).blocks, _seen(apart).packed) == (2, True)
    added = torch.zeros(apart.shape).masked_fill(~apart, torch.finfo(torch.float32).min)
    assert _seen(added).blocks == 2
    together = torch.ones(4, 4, dtype=torch.bool).tril()[None, None]
    assert (_seen(together).blocks, _seen(together).packed) == (0, True)
    assert not _seen(apart, ((0, 2, 0, 1),)).positions
    ahead = apart.clone()
    ahead[0, 0, 0, 1] = True
    assert _seen(ahead).blocks == 0


def test_a_mask_that_lets_sequences_see_each_other_is_no_packing(checkpoint, batch, monkeypatch) -> None:
    def causal(model, blocks):
        return block_causal(torch.zeros_like(blocks))

    monkeypatch.setattr("xcfg_torch.routes.mask_for", causal)
    observed = played(checkpoint, batch, PACKED).observed
    assert isinstance(observed["layout.packing"], Unobservable)
    assert isinstance(observed["batch.size"], Unobservable)


def test_models_whose_layers_look_further_or_less_far() -> None:
    config = transformers.Gemma2Config(
        vocab_size=40, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8,
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config)
    with pytest.raises(UnsupportedError, match="sliding_attention"):
        mask_for(model, torch.zeros((1, 3), dtype=torch.int64))

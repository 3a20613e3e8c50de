"""Context parallelism: rows shared by ranks give the bits of whole rows, and what cannot be shared is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from xcfg.errors import UnsupportedError
from xcfg_fsdp.context_layout import columns_of, layout_of
from xcfg_fsdp.context_limits import check_calls, check_model
from xcfg_fsdp.share import ContextShare
from xcfg_fsdp.testing.cases import TRAINING, fsdp_play
from xcfg_torch.testing.cases import played as torch_played
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.ranks import joined, play_ranks

CONTEXT = "training.context_parallel_size"
PLAIN = {"training.compute_dtype": "bfloat16"}
EAGER = {"training.compute_dtype": "float32", "training.attention_backend": "eager", "layout.padding_side": "left"}
LAUNCHES = {
    "two": (2, {**EAGER, "training.sharding": "unsharded", "fsdp.context_layout": "zigzag"}),
    "four": (4, {**PLAIN, "training.sharding": "full_shard", "batch.micro_size": 2}),
}


@pytest.fixture(scope="module", params=["two", pytest.param("four", marks=pytest.mark.full)])
def launched(request, checkpoint, batch, tmp_path_factory):
    """(ranks, requested knobs, one document a rank)."""
    ranks, knobs = LAUNCHES[request.param]
    knobs = {**TRAINING, **knobs, "training.world_size": ranks, CONTEXT: 2}
    folder = tmp_path_factory.mktemp("context") / request.param
    return ranks, knobs, play_ranks(fsdp_play(checkpoint, knobs), batch, folder, ranks=ranks)


def test_bits_are_those_of_whole_rows(launched, checkpoint, batch) -> None:
    _, knobs, documents = launched
    same = {name: knobs[name] for name in (*EAGER, "batch.micro_size")}
    (single,) = torch_played(checkpoint, batch, same).scored
    samples = joined(documents)
    for name in ("sequence", "input_ids", "position_ids", "action_mask", "logprobs"):
        assert getattr(samples, name).tobytes() == getattr(single.samples, name).tobytes(), name


def test_float64_agrees(launched, checkpoint, batch) -> None:
    _, knobs, documents = launched
    if knobs["training.compute_dtype"] == "float32":
        difference = np.abs(joined(documents).logprobs - np.concatenate(oracle_logprobs(checkpoint, batch)))
        assert difference.max() < 1e-5


def test_the_first_rank_of_each_group_hands_in_the_rows(launched) -> None:
    ranks, _, documents = launched
    # groups (0 1) and (2 3); batches (0 1 2), (3 4 5), (6) dealt to the groups in turn
    rows = {2: [[0, 1, 2, 3, 4, 5, 6], []], 4: [[0, 1, 2, 6], [], [3, 4, 5], []]}
    assert [document["samples"][0].sequence.tolist() for document in documents] == rows[ranks]


def test_values_are_observed_on_every_rank(launched) -> None:
    ranks, requested, documents = launched
    whole = requested["training.sharding"] == "unsharded"
    compute = requested["training.compute_dtype"]
    chosen = {
        "training.output_dtype": compute,
        "execution.collective": "gloo",
        "batch.micro_size": requested["batch.micro_size"] or 3,
        "training.reduce_dtype": None if whole else compute,
        "fsdp.master_dtype": "float32",
        "fsdp.reshard_after_forward": None if whole else "all-but-root",
        "fsdp.cpu_offload": None if whole else False,
        "fsdp.context_layout": requested["fsdp.context_layout"] or "contiguous",
    }
    for document in documents:
        assert document["observed"] == {**requested, **chosen}
        assert document["rank"]["parallel"] == {**({"dp": 1} if whole else {"shard": ranks}), "context": 2}
        assert document["states"][0] == document["states"][1]
        shapes = document["rank"]["facts"]["forward_shapes"]
        assert all(width % (4 if whole else 2) == 0 for _, width in shapes)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (transformers.MistralConfig(sliding_window=8), "sliding_attention"),
        (transformers.Qwen3Config(layer_types=["full_attention", "sliding_attention"] * 16), "sliding_attention"),
        (transformers.MistralConfig(sliding_window=None), None),
        (transformers.LlamaConfig(), None),
    ],
)
def test_layers_that_mix_columns_otherwise_are_refused(config, words) -> None:
    model = type("Model", (), {"config": config})()
    if words is None:
        check_model(model)
        return
    with pytest.raises(UnsupportedError, match=words):
        check_model(model)


def test_a_pass_in_which_a_layer_gathered_nothing_is_refused() -> None:
    model = type("Model", (), {"config": transformers.LlamaConfig(num_hidden_layers=3)})()
    check_calls(model, 3)
    with pytest.raises(UnsupportedError, match="2 calls and has 3 layers"):
        check_calls(model, 2)


def test_columns_of_a_rank() -> None:
    runs = [ContextShare(group=None, size=4, index=index) for index in range(4)]
    assert [share.columns(12).tolist() for share in runs] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    assert {share.multiple for share in runs} == {4}
    pairs = [ContextShare(group=None, size=2, index=index, layout="zigzag") for index in range(2)]
    assert [share.columns(8).tolist() for share in pairs] == [[0, 1, 6, 7], [2, 3, 4, 5]]
    assert {share.multiple for share in pairs} == {4}


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_layout_is_told_by_its_columns(size) -> None:
    width = 4 * size
    for layout in ("contiguous", "zigzag"):
        every = [columns_of(layout, width, size=size, index=index) for index in range(size)]
        assert sorted(column for columns in every for column in columns) == list(range(width))
        for index, columns in enumerate(every):
            assert layout_of(columns, width, size=size, index=index) == layout
            assert layout_of(columns[::-1], width, size=size, index=index) is None


def test_a_zigzag_gives_every_rank_as_many_pairs_of_query_and_key() -> None:
    pairs = [sum(column + 1 for column in columns_of("zigzag", 24, size=3, index=index)) for index in range(3)]
    assert pairs == [100, 100, 100]  # 24 * 25 / 2 pairs shared by three


@pytest.mark.gpu2
@pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason=f"needs two CUDA devices and NCCL, torch sees {torch.cuda.device_count()}"
)
def test_two_gpus_over_nccl(checkpoint, batch, tmp_path) -> None:
    knobs = {**PLAIN, "training.world_size": 2, CONTEXT: 2, "torch.device": "cuda"}
    documents = play_ranks(fsdp_play(checkpoint, knobs), batch, tmp_path / "launch", ranks=2)
    (single,) = torch_played(checkpoint, batch, {**PLAIN, "torch.device": "cuda"}).scored
    assert np.abs(joined(documents).logprobs - single.samples.logprobs).max() < 0.05
    assert all(document["observed"][CONTEXT] == 2 for document in documents)

"""Every knob and value: applied and read back from the live engine, or refused with a reason."""

from __future__ import annotations

import pytest

from xcfg_deepspeed.knobs import MATERIALIZERS
from xcfg_deepspeed.testing.cases import ENGINES, TRAINING, deepspeed_play
from xcfg_torch.testing.play import play

APPLIED = [
    ("training.attention_backend", "eager", "eager"),
    ("training.attention_backend", None, "sdpa"),
    ("training.output_dtype", "float32", "float32"),
    ("training.output_dtype", "bfloat16", "bfloat16"),
    ("batch.size", 1, 1),
    ("batch.size", 8, 8),
    ("batch.micro_size", 2, 2),
    ("layout.padding_side", "left", "left"),
    ("layout.position_ids", "padded", "padded"),
    ("logp.deterministic", True, True),
    ("execution.collective", "gloo", "gloo"),
    ("torch.device", None, "cpu"),
]
REFUSED = [
    ("training.context_parallel_size", 2, "Ulysses"),
    ("layout.packing", True, "attention mask"),
    ("layout.vocab_padding", 64, "output head"),
    ("logp.tp_layout", "vocab-parallel", "whole rows"),
    ("logp.reduction_policy", "ordered", "sum as their own"),
    ("execution.collective", "nccl", "CUDA"),
    ("torch.device", "cuda", "CUDA"),
]


@pytest.mark.full
@pytest.mark.parametrize(("knob", "value", "expected"), APPLIED)
@pytest.mark.parametrize("engine", ["zero-2", "zero-3", "inference"])
def test_applied_and_observed(checkpoint, batch, engine, knob, value, expected) -> None:
    padded = {"layout.padding_side": "left"} if knob == "layout.position_ids" else {}
    asked = {**ENGINES[engine], **padded, "training.compute_dtype": "float32", knob: value}
    assert play(deepspeed_play(checkpoint, asked), batch).observed[knob] == expected


@pytest.mark.parametrize(("knob", "value", "words"), REFUSED)
def test_refused(checkpoint, batch, knob, value, words) -> None:
    with pytest.raises(ValueError, match=words):
        play(deepspeed_play(checkpoint, {knob: value}), batch)


@pytest.mark.full
@pytest.mark.parametrize("stage", [0, 1, 2])
def test_compiled_layers(checkpoint, batch, stage, monkeypatch) -> None:
    import torch

    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(
        torch.nn.Module,
        "compile",
        lambda module: setattr(module, "_compiled_call_impl", torch.compile(module._call_impl, backend=backend)),
    )
    torch._dynamo.reset()
    knobs = {**ENGINES[f"zero-{stage}"], "training.compile": True, "training.compute_dtype": "float32"}
    result = play(deepspeed_play(checkpoint, knobs), batch)
    torch._dynamo.reset()
    assert graphs
    assert result.observed["training.compile"] is True
    assert result.states[0] == result.states[1]


def test_no_knob_is_left_out() -> None:
    """Knobs whose values are all in the tables here, in those of the engines or played on several ranks."""
    tables = {knob for knob, *_ in (*APPLIED, *REFUSED)} | {knob for engine in ENGINES.values() for knob in engine}
    elsewhere = {
        "training.compile",
        "training.compute_dtype",
        "training.tensor_parallel_size",
        "training.world_size",
        "execution.threads",
        "logp.backend",
    }
    assert {item.knob for item in MATERIALIZERS if item.target} == tables | elsewhere == set(TRAINING)

"""Compiled layers: they reach the live model, score what the eager ones score, and are told from them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from xcfg.errors import UnsupportedError
from xcfg.model.capability import Unobservable
from xcfg.model.scorer import Role
from xcfg.plugin import ScorerSpec
from xcfg_torch.compiling import compile_layers, decoder_layers
from xcfg_torch.materialize import TorchMaterializer
from xcfg_torch.scorer import TorchScorer
from xcfg_torch.testing.cases import TRAINING, played
from xcfg_torch.testing.oracle import oracle_logprobs

COMPILED = {"training.compile": True, "batch.size": 1}


@pytest.fixture
def traced(monkeypatch):
    """Graphs are traced, guarded and run as ever, but not lowered to C++; the list grows by one a graph."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def compile_in_place(module):
        module._compiled_call_impl = torch.compile(module._call_impl, backend=backend)

    torch._dynamo.reset()
    monkeypatch.setattr(torch.nn.Module, "compile", compile_in_place)
    yield graphs
    torch._dynamo.reset()


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_what_compiled_layers_did_is_observed(checkpoint, batch, traced, attention) -> None:
    knobs = {**COMPILED, "training.attention_backend": attention}
    result = played(checkpoint, batch, knobs, times=2)
    # the graphs run as they were traced here, so that the kernel shows
    own = {"torch.sdpa_kernel": "flash" if attention == "sdpa" else "none", "torch.norm_kernel": "unfused"}
    longest = max(len(prompt) + len(response) for prompt, response in zip(batch.prompts, batch.responses, strict=True))
    seen = {"training.output_dtype": "float32", "torch.head_dtype": "float32", "torch.prefill_chunk": longest}
    assert result.observed == {**TRAINING, **knobs, **own, **seen, "batch.micro_size": 1}
    assert traced
    assert result.scored[0].samples.logprobs.tobytes() == result.scored[1].samples.logprobs.tobytes()
    eager = played(checkpoint, batch, {**knobs, "training.compile": False}).scored[0]
    np.testing.assert_allclose(result.scored[0].samples.logprobs, eager.samples.logprobs, rtol=0, atol=2e-6)
    assert result.states[0] == result.states[1]


def test_layers_share_their_graphs(checkpoint, batch, traced) -> None:
    played(checkpoint, batch, COMPILED, times=3)
    assert len(traced) <= 2  # one of the first width, one of any width; two layers and three calls add none


def test_a_layer_that_lost_its_graph_is_seen(checkpoint) -> None:
    scorer = TorchScorer()
    scorer.open(
        ScorerSpec(
            role=Role.TRAINING,
            checkpoint=checkpoint,
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine={"compile": True},
        )
    )
    materializer = TorchMaterializer()
    assert materializer.read_back("training.compile", scorer.live) is True
    first, *rest = decoder_layers(scorer.live.model)
    first._compiled_call_impl = None
    assert isinstance(materializer.read_back("training.compile", scorer.live), Unobservable)
    for layer in rest:
        layer._compiled_call_impl = None
    assert materializer.read_back("training.compile", scorer.live) is False
    scorer.close()


def test_a_model_that_does_not_name_its_layers() -> None:
    class Odd(torch.nn.Module):
        _no_split_modules = None

    with pytest.raises(UnsupportedError, match="_no_split_modules"):
        compile_layers(Odd())


@pytest.mark.full
def test_compiled_for_the_processor(checkpoint, batch) -> None:
    torch._dynamo.reset()
    result = played(checkpoint, batch, COMPILED)
    (scored,) = result.scored
    assert result.observed["torch.sdpa_kernel"] == "compiled"
    expected = np.concatenate(oracle_logprobs(checkpoint, batch))
    np.testing.assert_allclose(scored.samples.logprobs, expected, rtol=0, atol=2e-5)

"""One rank without a launcher: the same FSDP2 code, in this process."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.distributed as dist

from xcfg.errors import EnvironmentFault, InvalidInput, UnsupportedError
from xcfg.model.capability import Unobservable, Unsupported
from xcfg.model.scorer import Role
from xcfg.plugin import ScoreRequest, ScorerSpec
from xcfg_fsdp.materialize import FsdpMaterializer
from xcfg_fsdp.mesh import hybrid_shape
from xcfg_fsdp.scorer import FsdpScorer
from xcfg_fsdp.testing.cases import TRAINING, fsdp_play
from xcfg_fsdp.wrap import decoder_layers, shard_model
from xcfg_torch.testing.cases import played as torch_played
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.play import load, play


def _torch_bits(checkpoint, batch, **knobs) -> bytes:
    chosen = {"training.compute_dtype": "bfloat16", **knobs}
    return torch_played(checkpoint, batch, chosen).scored[0].samples.logprobs.tobytes()


@pytest.mark.parametrize("sharding", ["unsharded", "full_shard"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_bits_are_those_of_the_unsharded_model(checkpoint, batch, sharding, dtype) -> None:
    result = play(
        fsdp_play(checkpoint, {"training.sharding": sharding, "training.compute_dtype": dtype}, times=2), batch
    )
    expected = _torch_bits(checkpoint, batch, **{"training.compute_dtype": dtype})
    assert [scored.samples.logprobs.tobytes() for scored in result.scored] == [expected, expected]
    assert result.states[0] == result.states[1]
    assert result.observed["training.compute_dtype"] == result.scored[0].rank.compute_dtype == dtype
    assert not dist.is_initialized()


def test_every_value_is_observed(checkpoint, batch) -> None:
    asked = {
        "training.output_dtype": "float32",
        "training.reduce_dtype": "float32",
        "fsdp.master_dtype": "float32",
        "fsdp.reshard_after_forward": False,
        "fsdp.cpu_offload": True,
        "batch.micro_size": 2,
        "layout.padding_side": "left",
        "training.attention_backend": "eager",
    }
    result = play(fsdp_play(checkpoint, asked), batch)
    assert result.observed == {**TRAINING, **asked, "execution.collective": "gloo"}


def test_the_engines_own_choices_are_observed(checkpoint, batch) -> None:
    observed = play(fsdp_play(checkpoint), batch).observed
    assert observed["training.output_dtype"] == "bfloat16"
    assert observed["training.reduce_dtype"] == "bfloat16"
    assert observed["fsdp.master_dtype"] == "float32"
    assert observed["fsdp.reshard_after_forward"] == "all-but-root"
    assert observed["fsdp.cpu_offload"] is False
    assert observed["batch.micro_size"] == 3
    assert observed["execution.collective"] == "gloo"


def test_output_dtype_is_the_roots_alone(checkpoint, batch) -> None:
    result = play(fsdp_play(checkpoint, {"training.output_dtype": "float32"}), batch)
    assert result.scored[0].rank.facts["logits_dtypes"] == ("float32",)
    assert result.scored[0].rank.facts["activation_dtypes"] == ("bfloat16",)
    assert result.scored[0].samples.logprobs.tobytes() == _torch_bits(checkpoint, batch)


def test_master_dtype_of_a_rounded_copy_changes_the_scores(checkpoint, batch) -> None:
    low = {"training.compute_dtype": "float32", "fsdp.master_dtype": "bfloat16"}
    result = play(fsdp_play(checkpoint, low), batch)
    assert result.observed["fsdp.master_dtype"] == "bfloat16"
    expected = _torch_bits(checkpoint, batch, **{"training.compute_dtype": "float32"})
    assert result.scored[0].samples.logprobs.tobytes() != expected


def test_the_library_of_collectives_reaches_the_group(checkpoint, batch) -> None:
    assert (
        play(fsdp_play(checkpoint, {"execution.collective": "gloo"}), batch).observed["execution.collective"] == "gloo"
    )
    asked = []

    def init_process_group(backend, **_):
        asked.append(backend)
        raise EnvironmentFault("no second library is at hand")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dist, "init_process_group", init_process_group)
        with pytest.raises(EnvironmentFault):
            FsdpScorer().open(_spec(checkpoint, sharding="full_shard", collective="nccl"))
    assert asked == ["nccl"]


def test_nccl_between_cpus_is_unsupported() -> None:
    found = FsdpMaterializer().probe("execution.collective", "nccl", {"knobs": {"torch.device": "cpu"}})
    assert isinstance(found, Unsupported)
    assert "CUDA" in found.reason


def test_parameters_split_over_another_mesh_are_seen(checkpoint) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    scorer = FsdpScorer()
    scorer.open(_spec(checkpoint, sharding="full_shard", dtype="float32"))
    assert FsdpMaterializer().read_back("training.tensor_parallel_size", scorer.live) == 1
    head = scorer.live.model.lm_head
    split = DTensor.from_local(
        head.weight.to_local(), init_device_mesh("cpu", (1,), mesh_dim_names=("expert",)), [Shard(0)]
    )
    head.register_parameter("weight", torch.nn.Parameter(split))
    found = FsdpMaterializer().read_back("training.tensor_parallel_size", scorer.live)
    scorer.close()
    assert isinstance(found, Unobservable)
    assert "expert" in found.reason


def test_compiled_layers_score_what_eager_ones_do(checkpoint, batch, monkeypatch) -> None:
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def compile_in_place(module):
        module._compiled_call_impl = torch.compile(module._call_impl, backend=backend)

    torch._dynamo.reset()
    monkeypatch.setattr(torch.nn.Module, "compile", compile_in_place)
    knobs = {"training.compile": True, "training.sharding": "full_shard", "training.compute_dtype": "float32"}
    result = play(fsdp_play(checkpoint, knobs, times=2), batch)
    torch._dynamo.reset()
    assert result.observed["training.compile"] is True
    assert result.observed["training.attention_backend"] == "sdpa"
    assert graphs
    expected = np.concatenate(oracle_logprobs(checkpoint, batch))
    for scored in result.scored:
        np.testing.assert_allclose(scored.samples.logprobs, expected, rtol=0, atol=2e-5)
    assert result.states[0] == result.states[1]


def _spec(checkpoint, world_size=1, **engine) -> ScorerSpec:
    return ScorerSpec(
        role=Role.TRAINING,
        checkpoint=checkpoint,
        trust_remote_code=False,
        rank=0,
        world_size=world_size,
        engine={"device": "cpu", **engine},
    )


def test_a_policy_that_was_changed_behind_the_scorer_is_seen(checkpoint, batch) -> None:
    from torch.distributed.fsdp import MixedPrecisionPolicy

    scorer = FsdpScorer()
    scorer.open(_spec(checkpoint, sharding="full_shard", dtype="bfloat16", reduce_dtype="float32"))
    state = scorer.live.model.model.layers[0]._get_fsdp_state()
    state._fsdp_param_group.mp_policy = MixedPrecisionPolicy()
    found = FsdpMaterializer().read_back("training.reduce_dtype", scorer.live)
    scorer.close()
    assert isinstance(found, Unobservable)
    assert "differ" in found.reason


def test_a_compute_dtype_that_one_layer_does_not_share_is_seen(checkpoint, batch) -> None:
    from torch.distributed.fsdp import MixedPrecisionPolicy

    scorer = _scored(checkpoint, batch)
    assert FsdpMaterializer().read_back("training.compute_dtype", scorer.live) == "bfloat16"
    group = scorer.live.model.model.layers[1]._get_fsdp_state()._fsdp_param_group
    group.mp_policy = MixedPrecisionPolicy(param_dtype=torch.float16)
    found = FsdpMaterializer().read_back("training.compute_dtype", scorer.live)
    scorer.close()
    assert isinstance(found, Unobservable)
    assert "float16" in found.reason


def test_parameters_freed_otherwise_than_set_are_seen(checkpoint, batch) -> None:
    scorer = _scored(checkpoint, batch)
    assert FsdpMaterializer().read_back("fsdp.reshard_after_forward", scorer.live) == "all-but-root"
    scorer.live.model.set_reshard_after_forward(False)  # after the pass, in which layers did free theirs
    found = FsdpMaterializer().read_back("fsdp.reshard_after_forward", scorer.live)
    scorer.close()
    assert isinstance(found, Unobservable)
    assert "did otherwise" in found.reason


def test_shards_under_another_offload_policy_are_seen(checkpoint, batch) -> None:
    from torch.distributed.fsdp import CPUOffloadPolicy

    scorer = _scored(checkpoint, batch)
    assert FsdpMaterializer().read_back("fsdp.cpu_offload", scorer.live) is False
    group = scorer.live.model.model.layers[0]._get_fsdp_state()._fsdp_param_group
    group.offload_policy = CPUOffloadPolicy()
    found = FsdpMaterializer().read_back("fsdp.cpu_offload", scorer.live)
    scorer.close()
    assert isinstance(found, Unobservable)


def test_activation_checkpointing_is_seen_and_refused(checkpoint, batch) -> None:
    refused = FsdpMaterializer().probe("fsdp.activation_checkpointing", True, {})
    assert isinstance(refused, Unsupported)
    assert "no backward pass" in refused.reason
    scorer = _scored(checkpoint, batch)
    read = FsdpMaterializer().read_back
    assert read("fsdp.activation_checkpointing", scorer.live) is False
    scorer.live.model.gradient_checkpointing_enable()
    found = read("fsdp.activation_checkpointing", scorer.live)
    scorer.close()
    assert found is True


def _scored(checkpoint, batch) -> FsdpScorer:
    """An open scorer that has scored once, in bfloat16."""
    scorer = FsdpScorer()
    scorer.open(_spec(checkpoint, sharding="full_shard", dtype="bfloat16"))
    with load("xcfg_kernels.production:Production")().bind(scorer.kernel_request("selected_logprob", {})) as bound:
        scorer.score(batch, ScoreRequest(operators={"selected_logprob": bound}))
    return scorer


def test_an_optimizer_step_is_seen(checkpoint, batch) -> None:
    scorer = FsdpScorer()
    scorer.open(_spec(checkpoint, sharding="full_shard", dtype="bfloat16"))
    before = scorer.state_digest()
    with load("xcfg_kernels.production:Production")().bind(scorer.kernel_request("selected_logprob", {})) as bound:
        scorer.score(batch, ScoreRequest(operators={"selected_logprob": bound}))
    assert scorer.state_digest() == before
    next(scorer.live.model.parameters()).data.mul_(1.5)
    changed = scorer.state_digest()
    scorer.close()
    assert changed != before


def test_close_after_a_failure(checkpoint, tmp_path) -> None:
    scorer = FsdpScorer()
    with pytest.raises(InvalidInput, match="no model directory"):
        scorer.open(_spec(tmp_path / "nowhere", sharding="full_shard"))
    assert dist.is_initialized()
    scorer.close()
    scorer.close()
    assert not dist.is_initialized()


def test_hybrid_of_one_rank_is_refused(checkpoint) -> None:
    scorer = FsdpScorer()
    with pytest.raises(UnsupportedError, match="at least 2"):
        scorer.open(_spec(checkpoint, sharding="hybrid"))
    scorer.close()


def test_several_ranks_need_the_launcher(checkpoint) -> None:
    with pytest.raises(EnvironmentFault, match="elastic launcher"):
        FsdpScorer().open(_spec(checkpoint, world_size=2, sharding="full_shard"))


@pytest.mark.parametrize(("ranks", "shape"), [(2, (2, 1)), (3, (3, 1)), (4, (2, 2)), (8, (2, 4)), (9, (3, 3))])
def test_hybrid_shapes_by_hand(ranks, shape) -> None:
    assert hybrid_shape(ranks) == shape


class _Odd:
    _no_split_modules = None
    _keep_in_fp32_modules = ("router",)
    _keep_in_fp32_modules_strict = None

    def modules(self):
        return []


def test_models_fsdp_cannot_wrap_faithfully() -> None:
    with pytest.raises(UnsupportedError, match="_no_split_modules"):
        decoder_layers(_Odd())
    with pytest.raises(UnsupportedError, match="keeps router in fp32"):
        shard_model(_Odd(), None, settings={"dtype": "bfloat16"})

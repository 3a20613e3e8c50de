"""Read-back tells what ran, also where that is not what was asked for."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
from attrs import evolve

from xcfg.model.capability import Supported, Unobservable, Unsupported
from xcfg.model.scorer import Role
from xcfg.plugin import ScoreRequest, ScorerSpec, Settings
from xcfg_torch.materialize import TorchMaterializer
from xcfg_torch.scorer import TorchScorer
from xcfg_torch.testing.cases import OWN_CHOICE, ROLLOUT, TRAINING, played
from xcfg_torch.testing.play import load


@contextmanager
def _scored(checkpoint, batch, knobs, *, tamper=lambda live: None, operator=None):
    """A scorer that was opened with ``knobs``, tampered with, and has scored."""
    settings, materializer = Settings(), TorchMaterializer()
    for knob, value in knobs.items():
        materializer.apply(knob, value, settings)
    scorer = TorchScorer()
    scorer.open(
        ScorerSpec(
            role=Role.TRAINING,
            checkpoint=checkpoint,
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine=settings.engine,
        )
    )
    tamper(scorer.live)
    with load("xcfg_kernels.production:Production")().bind(scorer.kernel_request("selected_logprob", {})) as bound:
        scorer.score(batch, ScoreRequest(settings=settings.request, operators={"selected_logprob": operator or bound}))
        yield scorer.live, materializer
    scorer.close()


def _widest(batch):
    lengths = [len(prompt) + len(response) for prompt, response in zip(batch.prompts, batch.responses, strict=True)]
    return max(lengths)


def test_training_values_are_observed(checkpoint, batch) -> None:
    observed = played(checkpoint, batch).observed
    chosen = {"training.output_dtype": "float32", "batch.micro_size": 3, "torch.head_dtype": "float32"}
    assert observed == {**TRAINING, **OWN_CHOICE, **chosen, "torch.prefill_chunk": _widest(batch)}


def test_rollout_values_are_observed(checkpoint, batch) -> None:
    observed = played(checkpoint, batch, role="rollout").observed
    chosen = {
        "rollout.attention_backend": "sdpa",
        "rollout.enforce_eager": True,
        "rollout.kv_cache_dtype": "none",
        "rollout.quantization": "none",
        "rollout.chunked_prefill": False,
        "torch.rollout_prefill_chunk": _widest(batch),
    }
    assert observed == {**ROLLOUT, **chosen}


def test_every_knob_can_be_read_back() -> None:
    from xcfg_torch.materializers import MATERIALIZERS

    declared = {item.knob for item in MATERIALIZERS if not item.inapplicable}
    idle = {item.knob for item in MATERIALIZERS if item.inapplicable}
    assert declared == set(TorchMaterializer.readers) - idle


def test_attention_that_was_switched_behind_the_scorer(checkpoint, batch) -> None:
    def tamper(live) -> None:
        live.model.config._attn_implementation = "eager"

    with _scored(checkpoint, batch, TRAINING, tamper=tamper) as (live, materializer):
        assert materializer.read_back("training.attention_backend", live) == "eager"


def test_activations_that_were_cast_behind_the_scorer(checkpoint, batch) -> None:
    with _scored(checkpoint, batch, TRAINING, tamper=lambda live: live.model.bfloat16()) as (live, materializer):
        assert materializer.read_back("training.compute_dtype", live) == "bfloat16"
        assert materializer.read_back("training.output_dtype", live) == "bfloat16"


def test_one_layer_in_lower_precision_decides(checkpoint, batch) -> None:
    def tamper(live) -> None:
        head = live.model.lm_head.bfloat16()
        head.register_forward_pre_hook(lambda module, args: (args[0].bfloat16(),), prepend=True)

    with _scored(checkpoint, batch, TRAINING, tamper=tamper) as (live, materializer):
        assert materializer.read_back("training.compute_dtype", live) == "bfloat16"
        assert live.seen.activations == {"float32", "bfloat16"}


def test_rows_that_do_not_bear_out_the_batch_size(checkpoint, batch) -> None:
    with _scored(checkpoint, batch, TRAINING) as (live, materializer):
        assert materializer.read_back("batch.size", live) == 3
        assert materializer.read_back("batch.micro_size", live) == 3
        live.seen.forwards.reverse()  # 1, 3, 3 rows: the smallest batch first, which no batch size gives
        for knob in ("batch.size", "batch.micro_size"):
            found = materializer.read_back(knob, live)
            assert isinstance(found, Unobservable)
            assert "[1, 3, 3] rows" in found.reason


def test_padding_on_the_other_side_is_seen(checkpoint, batch) -> None:
    def tamper(live) -> None:
        def flip(module, args, kwargs):
            return args, {name: v.flip(1) if torch.is_tensor(v) else v for name, v in kwargs.items()}

        live.model.register_forward_pre_hook(flip, with_kwargs=True, prepend=True)

    with _scored(checkpoint, batch, TRAINING, tamper=tamper) as (live, materializer):
        assert materializer.read_back("layout.padding_side", live) == "left"


def _positions(change):
    """A tamper that changes the positions on their way into the model, before they are seen."""

    def tamper(live) -> None:
        def hook(module, args, kwargs):
            return args, {**kwargs, "position_ids": change(kwargs["position_ids"])}

        live.model.register_forward_pre_hook(hook, with_kwargs=True, prepend=True)

    return tamper


def test_positions_that_count_in_no_known_way(checkpoint, batch) -> None:
    with _scored(checkpoint, batch, TRAINING, tamper=_positions(lambda ids: ids + 1)) as (live, materializer):
        found = materializer.read_back("layout.position_ids", live)
        assert isinstance(found, Unobservable)
        assert "no known way" in found.reason


def test_positions_that_ignore_the_padding(checkpoint, batch) -> None:
    def columns(ids):
        return torch.arange(ids.shape[1]).expand(ids.shape)

    left = {**TRAINING, "layout.padding_side": "left"}
    with _scored(checkpoint, batch, left, tamper=_positions(columns)) as (live, materializer):
        assert materializer.read_back("layout.position_ids", live) == "padded"


def test_a_row_that_holds_two_sequences(checkpoint, batch) -> None:
    with _scored(checkpoint, batch, TRAINING, tamper=_positions(lambda ids: ids % 4)) as (live, materializer):
        found = materializer.read_back("layout.packing", live)
        assert isinstance(found, Unobservable)
        assert "see each other" in found.reason


def test_a_pass_over_a_part_of_its_columns(checkpoint, batch) -> None:
    with _scored(checkpoint, batch, TRAINING) as (live, materializer):
        assert materializer.read_back("training.context_parallel_size", live) == 1
        live.seen.forwards[0] = evolve(live.seen.forwards[0], width=live.seen.forwards[0].width // 2)
        assert isinstance(materializer.read_back("training.context_parallel_size", live), Unobservable)


def test_a_head_with_rows_of_its_own(checkpoint, batch) -> None:
    with _scored(checkpoint, batch, TRAINING) as (live, materializer):
        live.model.lm_head.weight = torch.nn.Parameter(torch.zeros(384, live.model.config.hidden_size))
        for knob in ("layout.vocab_padding", "logp.tp_layout"):
            assert isinstance(materializer.read_back(knob, live), Unobservable)


def test_the_kernels_switch_is_put_back(checkpoint, batch) -> None:
    with _scored(checkpoint, batch, {**TRAINING, "logp.deterministic": True}) as (live, materializer):
        assert materializer.read_back("logp.deterministic", live) is True
        assert not torch.are_deterministic_algorithms_enabled()


def test_an_operator_that_does_not_name_itself(checkpoint, batch) -> None:
    def anonymous(logits, targets):
        return torch.zeros(len(targets))

    with _scored(checkpoint, batch, TRAINING, operator=anonymous) as (live, materializer):
        assert isinstance(materializer.read_back("logp.backend", live), Unobservable)


def test_threads_are_the_processs(checkpoint, batch) -> None:
    torch.set_num_threads(2)
    with _scored(checkpoint, batch, TRAINING) as (live, materializer):
        assert materializer.read_back("execution.threads", live) == 2


def test_nothing_is_known_before_scoring(checkpoint) -> None:
    scorer = TorchScorer()
    scorer.open(ScorerSpec(role=Role.TRAINING, checkpoint=checkpoint, trust_remote_code=False, rank=0, world_size=1))
    for knob in ("training.compute_dtype", "training.attention_backend", "batch.size", "rollout.scoring_path"):
        assert isinstance(TorchMaterializer().read_back(knob, scorer.live), Unobservable)
    scorer.close()


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("training.world_size", 2),
        ("training.sharding", "full_shard"),
        ("execution.prefix_cache", True),
        ("sampling.temperature", 0.7),
        ("sampling.top_p", 0.9),
        ("sampling.top_k", 5),
        ("rollout.quantization", "fp8"),
        ("training.tensor_parallel_size", 2),
        ("training.context_parallel_size", 2),
        ("layout.vocab_padding", 128),
        ("logp.tp_layout", "vocab-parallel"),
        ("logp.reduction_policy", "canonical"),
        ("rollout.enforce_eager", False),
        ("vllm.seed", 1),
    ],
)
def test_what_it_cannot_be(knob, value) -> None:
    found = TorchMaterializer().probe(knob, value, {})
    assert isinstance(found, Unsupported)
    assert knob in found.reason
    with pytest.raises(ValueError, match=knob):
        TorchMaterializer().apply(knob, value, Settings())


def test_threads_are_set_before_torch_starts() -> None:
    settings = Settings()
    assert TorchMaterializer().apply("execution.threads", 2, settings) == 2
    assert settings.env["OMP_NUM_THREADS"] == "2"
    assert TorchMaterializer().probe("execution.threads", 2, {}) == Supported()

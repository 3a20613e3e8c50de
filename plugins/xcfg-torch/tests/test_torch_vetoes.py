"""Combinations that are refused while planning, with the knob and the reason."""

from __future__ import annotations

import pytest

from xcfg.model.case import Case, SideConfig
from xcfg.model.experiment import Checkpoint
from xcfg.model.scorer import Role
from xcfg_torch.plugin import xcfg_reject_case
from xcfg_torch.vetoes import side_fault


def _side(knobs, *, path="nowhere", scorer="torch", role=Role.TRAINING):
    return SideConfig(role=role, scorer=scorer, checkpoint=Checkpoint(path=str(path)), knobs=knobs)


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"torch.forward": "chunked_prefill"}, "torch.prefill_chunk"),
        ({"torch.prefill_chunk": 8}, "torch.forward: whole"),
        ({"layout.packing": True, "torch.forward": "cached_decode"}, "layout.packing"),
        ({"layout.packing": True, "rollout.scoring_path": "forced_decode"}, "layout.packing"),
        ({"layout.packing": True, "layout.position_ids": "padded"}, "layout.position_ids"),
        ({"rollout.scoring_path": "forced_decode", "layout.position_ids": "padded"}, "layout.position_ids"),
        ({"rollout.scoring_path": "prefill", "rollout.chunked_prefill": True}, "torch.rollout_prefill_chunk"),
        (
            {"rollout.scoring_path": "prefill", "rollout.chunked_prefill": False, "torch.rollout_prefill_chunk": 4},
            "rollout.chunked_prefill: false",
        ),
        ({"torch.sdpa_kernel": "math", "training.attention_backend": "eager"}, "eager attention"),
        ({"training.compile": True, "torch.forward": "cached_decode"}, "compiled anew"),
        ({"training.compile": True, "torch.sdpa_kernel": "math"}, "torch.sdpa_kernel"),
        ({"training.compile": True, "torch.head_dtype": "float32"}, "torch.head_dtype"),
    ],
)
def test_what_no_scorer_here_runs(knobs, words) -> None:
    assert words in side_fault(_side(knobs))
    case = Case(id="x", rollout=_side({}, role=Role.ROLLOUT), training=_side(knobs))
    rejection = xcfg_reject_case(case, case)
    assert rejection is not None
    assert rejection.kind == "veto"


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"torch.forward": "whole", "training.compile": True, "torch.norm_kernel": "fused"},
        {"torch.forward": "cached_decode", "torch.prefill_chunk": 8},
        {"rollout.scoring_path": "forced_decode", "rollout.chunked_prefill": True, "torch.rollout_prefill_chunk": 4},
        {"layout.packing": True, "rollout.scoring_path": "prefill"},
    ],
)
def test_what_fits(knobs) -> None:
    assert side_fault(_side(knobs)) == ""


def test_heads_that_the_ranks_cannot_split_are_refused_before_a_launch(checkpoint) -> None:
    side = _side({"training.tensor_parallel_size": 4}, path=checkpoint, scorer="torch-tp")
    assert "num_key_value_heads = 2" in side_fault(side)


def test_sides_of_other_plugins_are_left_alone() -> None:
    case = Case(
        id="x",
        rollout=_side({"layout.packing": True}, scorer="vllm", role=Role.ROLLOUT),
        training=_side({"torch.forward": "chunked_prefill"}, scorer="fsdp"),
    )
    assert xcfg_reject_case(case, case) is None

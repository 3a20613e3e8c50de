"""Descriptors, vetoes and the process environment."""

from __future__ import annotations

import pytest

from xcfg.model.case import Case, SideConfig
from xcfg.model.experiment import Checkpoint
from xcfg.model.scorer import Role
from xcfg.testing.knob_tests import KnobTests
from xcfg.testing.plugin_tests import PluginTests
from xcfg_megatron.knobs import LAYER_SPEC, MATERIALIZERS, PADDED_VOCABULARY, PIPELINE
from xcfg_megatron.materialize import MegatronMaterializer
from xcfg_megatron.plugin import xcfg_process_environment, xcfg_reject_case


class TestMegatronPlugin(PluginTests):
    name = "megatron"
    distribution = "xcfg-megatron"
    engines = ("torch", "transformers", "numpy", "megatron")


class TestPipelineKnob(KnobTests):
    knob = PIPELINE
    accepted = {1: 1, 2: 2}
    refused = (0, "two", None)


class TestLayerSpecKnob(KnobTests):
    knob = LAYER_SPEC
    accepted = {"local": "local", "transformer_engine": "transformer_engine", None: None}
    refused = ("te", True)


class TestPaddedVocabularyKnob(KnobTests):
    knob = PADDED_VOCABULARY
    accepted = {True: True, False: False}
    refused = ("padded", 2, None)


def test_every_knob_can_be_read_back() -> None:
    assert {item.knob for item in MATERIALIZERS} == set(MegatronMaterializer.readers)
    assert len(MATERIALIZERS) == len({item.knob for item in MATERIALIZERS})


def _case(scorer="megatron", **knobs) -> Case:
    checkpoint = Checkpoint(path="model")
    named = {name.replace("__", "."): value for name, value in knobs.items()}
    return Case(
        id="case",
        rollout=SideConfig(role=Role.ROLLOUT, scorer="torch", checkpoint=checkpoint),
        training=SideConfig(role=Role.TRAINING, scorer=scorer, checkpoint=checkpoint, knobs=named),
    )


TP, PP, RANKS = "training__tensor_parallel_size", "megatron__pipeline_parallel_size", "training__world_size"
LAYOUT, PADDED = "logp__tp_layout", "megatron__padded_vocab_in_normaliser"


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({TP: 2, RANKS: 3}, "3 ranks are no multiple of 2 tensor-parallel times 1"),
        ({TP: 2, PP: 2, RANKS: 2}, "no multiple of 2 tensor-parallel times 2"),
        ({TP: 1, LAYOUT: "vocab-parallel"}, "has the full vocabulary"),
        ({"megatron__layer_spec": "transformer_engine", "layout__padding_side": "left"}, "padding on the left"),
        ({PADDED: True, "layout__vocab_padding": 1}, "adds no row"),
    ],
)
def test_vetoes(knobs, words) -> None:
    case = _case(**knobs)
    found = xcfg_reject_case(case=case, baseline=case)
    assert found is not None and found.kind == "veto"
    assert words in found.reason
    other = _case(scorer="torch", **knobs)
    assert xcfg_reject_case(case=other, baseline=other) is None


@pytest.mark.parametrize(
    "knobs",
    [
        {TP: 2, RANKS: 4, LAYOUT: "vocab-parallel"},
        {TP: 2, PP: 2, RANKS: 4, LAYOUT: "full-vocabulary"},
        {"megatron__layer_spec": "local", "layout__padding_side": "left"},
        {PADDED: True, "layout__vocab_padding": 128},
        {PADDED: False, "layout__vocab_padding": 1},
    ],
)
def test_what_has_a_meaning_passes(knobs) -> None:
    case = _case(**knobs)
    assert xcfg_reject_case(case=case, baseline=case) is None


def test_environment_is_the_scorers_only() -> None:
    assert xcfg_process_environment(side=_case().training)["HF_HUB_OFFLINE"] == "1"
    assert xcfg_process_environment(side=_case().rollout) == {}

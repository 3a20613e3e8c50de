"""What differs around two sides, from values written down by hand."""

from __future__ import annotations

from attrs import evolve

from xcfg.diagnosis.environment import Surrounding, differences
from xcfg.model.identity import LogprobSemantics, SideIdentity
from xcfg.model.provenance import KnobProvenance, KnobState, SideProvenance
from xcfg.model.sample import RankInfo

IDENTITY = SideIdentity(
    checkpoint_digest="c", tokenizer_digest="t", token_digest="b", state_before="s", state_after="s",
    semantics=LogprobSemantics(vocab_size=64),
)  # fmt: skip


def side(knobs=None, *, variables=None, facts=None, python="3.11.7", **identity) -> Surrounding:
    return Surrounding(
        identity=evolve(IDENTITY, **identity),
        provenance=SideProvenance(
            knobs={
                name: KnobProvenance(observed=value, state=KnobState.APPLIED) for name, value in (knobs or {}).items()
            }
        ),
        ranks=[RankInfo(rank=0, world_size=1, compute_dtype="bfloat16", parallel={"tp": 1})],
        fingerprint={"python": python, "machine": "x86_64", "environment": variables or {}},
        facts={"0": {"one": facts or {}}},
    )


def told(rollout, training) -> list[tuple]:
    return [(item.name, item.rollout, item.training) for item in differences(rollout, training)]


def test_equal_sides_differ_in_nothing() -> None:
    assert differences(side({"batch.size": 8}), side({"batch.size": 8})) == ()


def test_the_likeliest_comes_first() -> None:
    rollout = side({"batch.size": 8}, python="3.11.7", facts={"torch": "2.13.0"}, checkpoint_digest="one")
    training = side({"batch.size": 4}, python="3.12.1", facts={"torch": "2.12.0"}, checkpoint_digest="other")
    assert told(rollout, training) == [
        ("weights", "one", "other"),
        ("version torch", ("2.13.0",), ("2.12.0",)),
        ("batch.size", 8, 4),
        ("python", "3.11.7", "3.12.1"),
    ]
    assert [item.tier for item in differences(rollout, training)] == [0, 1, 2, 3]


def test_each_layer_and_each_meaning_is_named() -> None:
    rollout = side(recorded={"sections": {"0": "a", "1": "b", "ends": "e"}})
    training = side(
        recorded={"sections": {"0": "a", "1": "x", "ends": "e"}},
        semantics=LogprobSemantics(vocab_size=64, temperature=0.6),
    )
    assert told(rollout, training) == [("layer 1", "b", "x"), ("semantics temperature", 1.0, 0.6)]


def test_settings_of_two_names_are_one() -> None:
    rollout, training = side({"rollout.attention_backend": "flash"}), side({"training.attention_backend": "sdpa"})
    assert told(rollout, training) == [("rollout.attention_backend", "flash", "sdpa")]


def test_what_one_side_alone_states_is_no_difference_but_a_variable_is() -> None:
    rollout = side(
        {"vllm.block_size": 16}, facts={"vllm": "0.32"}, variables={"NCCL_ALGO": "Ring", "VLLM_LOGGING_LEVEL": "x"}
    )
    found = differences(rollout, side())
    assert [(item.name, item.training, item.tier) for item in found] == [
        ("variable NCCL_ALGO", None, 2),
        ("variable VLLM_LOGGING_LEVEL", None, 3),
    ]


def test_ranks_that_disagree_are_all_told() -> None:
    rollout = side(facts={"torch": "2.13.0"})
    training = evolve(rollout, facts={"0": {"one": {"torch": "2.13.0"}}, "1": {"one": {"torch": "2.12.0"}}})
    assert told(rollout, training) == [("version torch", ("2.13.0",), ("2.12.0", "2.13.0"))]

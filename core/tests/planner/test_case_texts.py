"""Ids put together from parts are the ids of the model."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from xcfg.model.case import SideConfig, case_id
from xcfg.model.experiment import Checkpoint
from xcfg.model.ids import canonical
from xcfg.model.kernel import OperatorChoice
from xcfg.model.scorer import Role
from xcfg.planner.case_ids import CaseIds

TEXT = st.text(max_size=8)
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
OPTIONS = st.dictionaries(TEXT | st.just("knobs"), JSON | st.just({}), max_size=2)
CONFIGS = st.builds(
    SideConfig,
    role=st.sampled_from(Role),
    scorer=TEXT,
    checkpoint=st.builds(Checkpoint, path=TEXT | st.just('"knobs":{'), revision=TEXT, trust_remote_code=st.booleans()),
    knobs=st.dictionaries(TEXT, SCALAR, max_size=6),
    operators=st.dictionaries(TEXT, st.builds(OperatorChoice, backend=TEXT, options=OPTIONS), max_size=2),
)


@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(CONFIGS, CONFIGS), min_size=1, max_size=4), JSON, JSON)
def test_any_sides(pairs: list[tuple[SideConfig, SideConfig]], tokens: Any, contract: Any) -> None:
    ids = CaseIds(tokens, contract)
    for rollout, training in pairs:
        assert ids.text(rollout) == canonical(rollout.key())
        assert ids.of(rollout, training) == case_id(rollout, training, tokens, contract)


def test_one_and_true_and_one_point_nought_are_told_apart_as_ids_tell_them() -> None:
    ids = CaseIds({}, {})
    configs = [
        SideConfig(role=Role.ROLLOUT, scorer="s", checkpoint=Checkpoint(path="m"), knobs={"k": value})
        for value in (1, True, 1.0, "1", None)
    ]
    texts = [ids.text(config) for config in configs]
    assert texts == [canonical(config.key()) for config in configs]
    assert len(set(texts)) == 4


def test_equal_names_of_operators_with_other_options_keep_their_texts() -> None:
    ids = CaseIds({}, {})
    for options in ({}, {"n": 1}, {}, {"n": 2}):
        config = SideConfig(
            role=Role.TRAINING,
            scorer="s",
            checkpoint=Checkpoint(path="m"),
            operators={"op": OperatorChoice(backend="b", options=options)},
        )
        assert ids.text(config) == canonical(config.key())

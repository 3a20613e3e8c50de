from __future__ import annotations

import hashlib
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcfg.model.ids import canonical, digest, short_id
from xcfg.model.json import freeze, thaw

leaves = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5)
values = st.recursive(
    leaves | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(list(value))}
    return [backwards(item) for item in value] if isinstance(value, list) else value


def test_the_canonical_text_written_by_hand() -> None:
    value = {"b": (1.0, True, None), "a": MappingProxyType({"é": "x\n", "n": 1e21})}
    text = '{"a":{"n":1e+21,"é":"x\\n"},"b":[1,true,null]}'
    assert canonical(value) == text.encode()
    assert digest(value) == hashlib.sha256(text.encode()).hexdigest()
    assert short_id(value) == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_large_integers_are_not_rounded_into_each_other() -> None:
    assert canonical(2**53) == b'"9007199254740992"'
    assert canonical(-(2**53)) == b'"-9007199254740992"'
    assert canonical(2**53 - 1) == b"9007199254740991"
    assert digest(2**60) != digest(2**60 + 1)


def test_one_is_one_but_not_true() -> None:
    assert digest({"a": 1}) == digest({"a": 1.0})
    assert digest({"a": 1}) != digest({"a": True})
    assert digest({"a": None}) != digest({})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        canonical({"a": value})


@settings(max_examples=60, deadline=None)
@given(values)
def test_key_order_and_freezing_do_not_change_a_digest(value: Any) -> None:
    assert digest(value) == digest(backwards(value)) == digest(freeze(value))


@settings(max_examples=60, deadline=None)
@given(values)
def test_thawing_undoes_freezing(value: Any) -> None:
    assert thaw(freeze(value)) == value


def test_a_frozen_value_is_a_copy_nobody_can_change() -> None:
    source: dict[str, Any] = {"a": {"b": [1, [2]]}}
    frozen = freeze(source)
    source["a"]["b"][1].append(3)
    assert frozen["a"]["b"] == (1, (2,))
    with pytest.raises(TypeError):
        frozen["a"]["b"] = 0

from __future__ import annotations

import math
from typing import Any

import pytest

from xcfg.model.knob import Constraint, Domain, Kind, Knob, Lifecycle, SourceClass, Target

DTYPE = Domain(kind=Kind.STR, values=("float32", "bfloat16"), aliases={"bf16": "bfloat16"})
SIZE = Domain(kind=Kind.INT, minimum=1, maximum=8)
RATE = Domain(kind=Kind.FLOAT, minimum=0, optional=True)
FLAG = Domain(kind=Kind.BOOL)


@pytest.mark.parametrize(
    ("domain", "value", "normal"),
    [
        (DTYPE, "bf16", "bfloat16"),
        (DTYPE, "float32", "float32"),
        (SIZE, 1, 1),
        (SIZE, 8, 8),
        (RATE, 2, 2.0),
        (RATE, 0.0, 0.0),
        (RATE, None, None),
        (FLAG, False, False),
    ],
)
def test_normal_forms(domain: Domain, value: Any, normal: Any) -> None:
    found = domain.normalise(value)
    assert found == normal and type(found) is type(normal)


@pytest.mark.parametrize(
    ("domain", "value"),
    [
        (DTYPE, "int4"),
        (DTYPE, "BF16"),
        (DTYPE, 32),
        (DTYPE, None),
        (DTYPE, ["bf16"]),
        (SIZE, 0),
        (SIZE, 9),
        (SIZE, 1.0),
        (SIZE, True),
        (SIZE, "1"),
        (RATE, -0.5),
        (RATE, math.nan),
        (RATE, math.inf),
        (RATE, False),
        (FLAG, 1),
        (FLAG, "true"),
        (FLAG, None),
    ],
)
def test_what_a_domain_refuses(domain: Domain, value: Any) -> None:
    with pytest.raises(ValueError) as caught:
        domain.normalise(value)
    assert domain.describe() in str(caught.value)


def test_domains_in_words() -> None:
    assert DTYPE.describe() == "one of float32, bfloat16"
    assert SIZE.describe() == "int >= 1 <= 8"
    assert RATE.describe() == "float >= 0 or null (the engine's own choice)"


@pytest.mark.parametrize(
    ("target", "rollout", "training"),
    [
        (Target.ROLLOUT, True, False),
        (Target.TRAINING, False, True),
        (Target.BOTH, True, True),
        (Target.KERNEL, True, True),
    ],
)
def test_the_sides_a_knob_belongs_to(target: Target, rollout: bool, training: bool) -> None:
    knob = Knob(
        name="a.b",
        summary="",
        source_class=SourceClass.LOGICAL,
        lifecycle=Lifecycle.REQUEST,
        targets=target,
        domain=FLAG,
    )
    assert (knob.applies_to("rollout"), knob.applies_to("training")) == (rollout, training)


def test_constraints() -> None:
    rule = Constraint(reason="r", when={"a": (1, 2), "b": (True,)}, require={"c": ("x",)})
    assert rule.violated({"a": 1, "b": True, "c": "y"})
    assert not rule.violated({"a": 1, "b": True, "c": "x"})
    assert not rule.violated({"a": 3, "b": True, "c": "y"})
    assert not rule.violated({"a": 1, "c": "y"})
    assert not rule.violated({"a": 1, "b": True})

"""One instance while it is made: what a fault may reach for on each side before and after the logits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import Factory, define, evolve

from xcfg.diagnosis.observed import Rows
from xcfg.testing.scenarios.language import How, Weights, draw_states, draw_weights
from xcfg.testing.scenarios.layout import Layout, Shape, Wants, draw_layout

Transform = Callable[[np.ndarray], np.ndarray]
"""Logits (N, V) to the logits that are scored, of the same shape; minus infinity is allowed off the sampled token."""
After = Callable[[np.ndarray], np.ndarray]
"""Logprobs (N,) to the logprobs that are recorded."""


@define(kw_only=True, eq=False)
class Half:
    """One side. ``raw``, ``logits`` (N, V), ``lse`` and ``logprob`` (N,) are there once it was scored.

    ``stored`` is the dtype that it says it kept its logprobs in.
    """

    weights: Weights
    states: np.ndarray
    how: How
    stored: str = "float32"
    transforms: list[Transform] = Factory(list)
    after: list[After] = Factory(list)
    raw: np.ndarray = Factory(lambda: np.empty((0, 0), np.float32))
    logits: np.ndarray = Factory(lambda: np.empty((0, 0), np.float32))
    lse: np.ndarray = Factory(lambda: np.empty(0))
    logprob: np.ndarray = Factory(lambda: np.empty(0))


@define(kw_only=True, eq=False)
class Draft:
    """Both sides, their layout, the sampler's transforms of the rollout's logits, and ``facts`` that tests read.

    ``loud`` keeps a disturbance well above the floor, where it must be seen beside another fault.
    """

    generator: np.random.Generator
    shape: Shape
    layout: Layout
    rollout: Half
    training: Half
    sampler: list[Transform] = Factory(list)
    token: np.ndarray = Factory(lambda: np.empty(0, np.int64))
    facts: dict[str, object] = Factory(dict)
    loud: bool = False

    @property
    def rows(self) -> Rows:
        """All metadata, before some of it is lost."""
        return self.layout.rows

    @property
    def row(self) -> np.ndarray:
        """(N,) row of each token."""
        return self.layout.row

    @property
    def position(self) -> np.ndarray:
        """(N,) position in the response."""
        return self.layout.position

    def column(self, name: str) -> np.ndarray:
        """(R,) a column of the metadata."""
        values: np.ndarray = getattr(self.rows, name)
        return values

    def either(self) -> Half:
        """One of the sides, at random."""
        side = "rollout" if self.generator.random() < 0.5 else "training"
        self.facts["side"] = side
        half: Half = getattr(self, side)
        return half

    def pick(self, *choices: float) -> float:
        """One of ``choices``, at random."""
        return float(self.generator.choice(np.array(choices)))

    def between(self, low: float, high: float) -> float:
        """A number between ``low`` and ``high``, uniform in its logarithm."""
        return float(np.exp(self.generator.uniform(np.log(low), np.log(high))))

    def disturb(self, half: Half, where: np.ndarray, size: float) -> None:
        """Turn the states at ``where`` ((N,) share from 0 to 1, or bool) by ``size`` of their length, each its own way.

        The rest of the side's pass then acts on it, so that tokens which are certain hardly move, as they do in a
        model whose cache, positions or weights are not quite right.
        """
        places = np.flatnonzero(where)
        states = half.states[places]
        way = self.generator.standard_normal(states.shape, dtype=np.float32)
        way *= np.linalg.norm(states, axis=1, keepdims=True) / np.linalg.norm(way, axis=1, keepdims=True)
        half.states = half.states.copy()
        half.states[places] += way * (size * where[places].astype(np.float32))[:, None]
        self.facts.update(where=where, size=size)


def begin(generator: np.random.Generator, shape: Shape, wants: Wants) -> Draft:
    """Two sides that differ in nothing but the number of shards and, sometimes, the dtype of one head."""
    layout = draw_layout(generator, shape, wants)
    weights = draw_weights(generator, shape.vocabulary, shape.dtype)
    states = draw_states(generator, weights, len(layout.row))
    shards = generator.choice([1, 2, 4], 2, replace=False)
    one, other = (How(dtype=shape.dtype, head=shape.dtype, shards=int(number)) for number in shards)
    if generator.random() < 0.2:
        other = evolve(other, head="float32")
    return Draft(
        generator=generator,
        shape=shape,
        layout=layout,
        rollout=Half(weights=weights, states=states, how=one),
        training=Half(weights=weights, states=states, how=other),
    )

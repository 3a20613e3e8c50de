"""A causal language model of a few lines of numpy, small enough to check by hand and bitwise reproducible."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from attrs import Factory, define, frozen

from xcfg.testing.rounding import rounded

HIDDEN = 32
_DECAY = np.float32(0.75)
_POSITIONS = 64


@frozen(kw_only=True)
class Precision:
    """How the forward pass rounds and splits its sums.

    ``compute``, ``cache`` and ``output`` are dtypes of activations, recurrent state and logits; ``shards`` the number
    of partial sums of each product, as tensor parallelism would make; ``eager`` rounds the state's decay too.
    """

    compute: str = "float32"
    cache: str = "float32"
    output: str = "float32"
    shards: int = 1
    eager: bool = False


@define(eq=False)
class Weights:
    """Float32 parameters drawn from ``seed``: embedding (V, H), mixer (H, H), head (H, V), position table (P, H)."""

    seed: int
    vocab_size: int
    arrays: dict[str, np.ndarray] = Factory(dict)

    def __attrs_post_init__(self) -> None:
        """Draw the parameters."""
        draw = np.random.default_rng(self.seed).standard_normal
        shapes = {
            "embedding": (self.vocab_size, HIDDEN),
            "mixer": (HIDDEN, HIDDEN),
            "head": (HIDDEN, self.vocab_size),
            "position": (_POSITIONS, HIDDEN),
        }
        scales = {"embedding": 1.0, "mixer": HIDDEN**-0.5, "head": 0.75, "position": 0.25}
        self.arrays = {name: (draw(shape) * scales[name]).astype(np.float32) for name, shape in shapes.items()}

    def digest(self) -> str:
        """SHA-256 of all parameters."""
        state = hashlib.sha256()
        for name in sorted(self.arrays):
            state.update(name.encode() + self.arrays[name].tobytes())
        return state.hexdigest()


class LanguageModel:
    """``state = decay * state + embedding[token]``, then ``tanh(state @ mixer + position) @ head``."""

    def __init__(self, weights: Weights, precision: Precision) -> None:
        """Round the parameters to the compute dtype once."""
        self.weights = weights
        self.precision = precision
        self._stored = {name: rounded(array, precision.compute) for name, array in weights.arrays.items()}

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        """(T, V) float32: row t holds the logits after ``tokens[: t + 1]``. Token by token, so no shape matters."""
        state = np.zeros(HIDDEN, dtype=np.float32)
        rows = np.empty((len(tokens), self.weights.vocab_size), dtype=np.float32)
        for position, token in enumerate(tokens):
            state = self.advance(state, token)
            rows[position] = self.read(state, position)
        return rows

    def advance(self, state: np.ndarray, token: int) -> np.ndarray:
        """The state (H,) after one more token."""
        kept = _DECAY * state
        if self.precision.eager:
            kept = rounded(kept, self.precision.compute)
        return rounded(kept + self._stored["embedding"][token], self.precision.cache)

    def read(self, state: np.ndarray, position: int) -> np.ndarray:
        """The logits (V,) float32 that follow a state."""
        mixed = self._product(state, self._stored["mixer"]) + self._stored["position"][position % _POSITIONS]
        hidden = rounded(np.tanh(mixed), self.precision.compute)
        return rounded(self._product(hidden, self._stored["head"]), self.precision.output)

    def _product(self, vector: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """``vector @ matrix`` added up in a fixed order, which a BLAS would not promise."""
        parts = np.array_split(np.arange(len(vector)), self.precision.shards)
        total = np.zeros(matrix.shape[1], dtype=np.float32)
        for part in parts:
            partial = np.add.reduce(vector[part, None] * matrix[part], axis=0)
            total = total + rounded(partial, self.precision.compute)
        return rounded(total, self.precision.compute)


def selected_logprob(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """``log_softmax(logits)[n, targets[n]]`` in float64, returned as float32 (N,) in nats."""
    exact = logits.astype(np.float64)
    top = exact.max(axis=1, initial=-np.inf)
    normaliser = top + np.log(np.exp(exact - top[:, None]).sum(axis=1))
    result: np.ndarray = (exact[np.arange(len(targets)), targets] - normaliser).astype(np.float32)
    return result

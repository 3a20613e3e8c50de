"""Whether training with a case came out worse than with its aligned reference."""

from __future__ import annotations

import numpy as np

from xcfg.analyzer.curves import Curves
from xcfg.analyzer.downstream import worse_downstream

STEPS = np.arange(40, dtype=np.int64)


def curves(**columns: np.ndarray) -> Curves:
    return Curves(step=STEPS, columns={name.replace("_", "/", 1): values for name, values in columns.items()})


def rising(to: float, noise: float = 0.0) -> np.ndarray:
    wobble = np.where(STEPS % 2, noise, -noise)
    return np.minimum(STEPS / 20, 1.0) * to + wobble


def test_levels_of_a_clear_loss_are_given() -> None:
    found = worse_downstream(
        curves(reward=rising(1.0), eval_math=rising(0.4)), curves(reward=rising(0.6), eval_math=rising(0.4))
    )
    assert found == {"reward": {"reference": 1.0, "case": 0.6}}


def test_a_better_end_is_not_worse() -> None:
    assert worse_downstream(curves(reward=rising(0.6)), curves(reward=rising(1.0))) == {}


def test_less_than_the_noise_of_either_is_no_loss() -> None:
    quiet, loud = curves(reward=rising(1.0)), curves(reward=rising(0.7, noise=0.3))
    assert worse_downstream(quiet, loud) == {}
    assert worse_downstream(curves(reward=rising(1.0, noise=0.3)), curves(reward=rising(0.7))) == {}


def test_an_immaterial_loss_is_none() -> None:
    assert worse_downstream(curves(reward=rising(1.0)), curves(reward=rising(0.95))) == {}


def test_what_only_one_has_or_is_too_short_is_left_out() -> None:
    few = np.where(STEPS < 5, 0.1, np.nan)
    assert worse_downstream(curves(reward=rising(1.0)), curves(eval_math=rising(0.1))) == {}
    assert worse_downstream(curves(reward=rising(1.0)), curves(reward=few)) == {}

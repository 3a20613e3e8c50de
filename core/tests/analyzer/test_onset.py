"""When a curve moves.

Noise alone: of 400 curves of 60 points of white noise of each of four kinds (normal about 10, folded normal as of a KL
about 0, exponential, log-normal with deviation 1), seed 7, at most 2 in 100 move. Rewards of normal noise rise and
collapse in at most 2 in 100 as well.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcfg.analyzer.course import course
from xcfg.analyzer.curves import Series
from xcfg.analyzer.onset import Movement, onset

KINDS = {
    "normal about 10": lambda rng: rng.normal(10.0, 1.0, 60),
    "folded normal": lambda rng: np.abs(rng.normal(0.0, 1.0, 60)),
    "exponential": lambda rng: rng.exponential(1.0, 60),
    "log-normal": lambda rng: np.exp(rng.normal(0.0, 1.0, 60)),
}


def series(values, name="gradnorm", every=1):
    return Series(name, np.arange(len(values)) * every, np.array(values, dtype=float))


@pytest.mark.parametrize("kind", KINDS)
def test_noise_alone_hardly_ever_moves(kind):
    rng = np.random.default_rng(7)
    moved = sum(onset(series(KINDS[kind](rng))).movement is Movement.MOVED for _ in range(400))
    assert moved / 400 <= 0.02


def test_noise_alone_hardly_ever_rises_and_collapses():
    rng = np.random.default_rng(7)
    fired = sum(course(series(rng.normal(1.0, 1.0, 60), "reward")).rises_then_collapses for _ in range(400))
    assert fired / 400 <= 0.02


@pytest.mark.parametrize("step", [4, 5, 11, 20, 27])
def test_a_jump_in_noise_is_found_where_it_is(step):
    rng = np.random.default_rng(step)
    values = rng.normal(1.0, 0.05, 30)
    values[step:] += 4.0
    found = onset(series(values, every=10))
    assert (found.movement, found.step, found.quiet_until) == (Movement.MOVED, 10 * step, 10 * (step - 1))
    assert found.level == pytest.approx(1.0, abs=0.1)


def test_a_jump_shortly_before_the_end_is_not_confirmed():
    values = [1.0] * 28 + [9.0] * 2
    found = onset(series(values))
    assert (found.movement, found.step, found.quiet_until) == (Movement.UNCONFIRMED, 28, 27)
    assert onset(series([*values, 9.0])).movement is Movement.MOVED


def test_equality_with_the_limit_is_no_move():
    """An opening of constant 2 has the limit 3: half of the level above it."""
    still = onset(series([2.0] * 6 + [3.0] * 6))
    assert (still.movement, still.limit) == (Movement.STEADY, 3.0)
    assert onset(series([2.0] * 6 + [3.0001] * 6)).step == 6


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 3 + [9.0] * 3])
def test_a_short_curve_cannot_tell(values):
    found = onset(series(values))
    assert (found.movement, found.step, found.quiet_until) == (Movement.CANNOT_TELL, None, None)


@pytest.mark.parametrize("level", [0.0, 1.0, -3.0])
def test_a_constant_curve_is_steady(level):
    found = onset(series([level] * 20))
    assert (found.movement, found.quiet_until) == (Movement.STEADY, 19)


def test_two_spikes_in_a_row_are_no_onset():
    values = [1.0] * 30
    values[10] = values[11] = values[20] = 100.0
    assert onset(series(values)).movement is Movement.STEADY


@pytest.mark.parametrize("shape", [lambda x: 1e-4 * x, lambda x: 0.01 * np.sqrt(x), lambda x: 0.01 * np.log1p(x)])
def test_a_trend_that_does_not_quicken_is_no_onset(shape):
    """KL against the reference of a healthy run grows like this."""
    assert onset(series(shape(np.arange(200.0)), "kl")).movement is Movement.STEADY


def test_a_fall_is_no_onset():
    assert onset(series([5.0] * 10 + [0.5] * 20)).movement is Movement.STEADY


def test_kl_moves_by_its_size_and_the_ratio_by_its_distance_from_one():
    assert onset(series([-0.01] * 10 + [-0.5] * 10, "kl")).step == 10
    assert onset(series([1.01] * 10 + [0.5] * 10, "ratio")).step == 10
    assert onset(series([1.0] * 10 + [1.0 + 1e-7] * 10, "ratio")).movement is Movement.STEADY


def test_infinities_move_and_an_opening_of_them_cannot_tell():
    assert onset(series([1.0] * 6 + [math.inf] * 4)).step == 6
    assert onset(series([math.inf] * 10)).movement is Movement.CANNOT_TELL


@given(
    st.lists(st.floats(0.0, 1e6, allow_subnormal=False), min_size=0, max_size=60),
    st.sampled_from([0.125, 2.0, 1024.0]),
)
def test_units_of_a_gradient_norm_do_not_matter(values, factor):
    """Scaling by a power of two is exact in floating point; the floor for rounding is met only by curves near it."""
    kept = [1.0 + value for value in values]
    plain, scaled = onset(series(kept)), onset(series([factor * value for value in kept]))
    assert (plain.movement, plain.step, plain.quiet_until) == (scaled.movement, scaled.step, scaled.quiet_until)


@given(st.lists(st.floats(allow_nan=False), max_size=40))
def test_the_onset_is_a_step_of_the_curve_and_its_past_decides_it(values):
    found = onset(series(values))
    if found.movement is Movement.MOVED:
        assert found.quiet_until == found.step - 1
        again = onset(series(values[: found.step + 3]))
        assert (again.movement, again.step) == (Movement.MOVED, found.step)

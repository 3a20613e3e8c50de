"""Rewards that rise and collapse, and runs that look healthy."""

import math

import numpy as np
import pytest

from xcfg.analyzer.course import course
from xcfg.analyzer.curves import Series
from xcfg.analyzer.health import Health, checkup, collapse_step, collapses

RISE = np.linspace(0.1, 0.9, 20)


def taken(values):
    return course(Series("reward", np.arange(len(values)), np.array(values, dtype=float)))


@pytest.mark.parametrize(
    ("values", "rises", "then_collapses"),
    [
        ([*RISE, *RISE[::-1]], True, True),
        ([*RISE, *[0.9] * 10], True, False),
        ([*RISE, *[0.1] * 5], True, True),
        ([*RISE, *[0.1] * 3, *[0.9] * 5], True, False),  # a dip that recovers
        ([*RISE, 0.1], True, False),  # one point
        ([0.5] * 30, False, False),
        ([0.9] * 15 + [0.1] * 15, False, False),  # falls without a rise
        ([0.5] * 10 + [0.52] * 10 + [0.4] * 10, False, False),  # a rise under a tenth
        ([0, 1, 2, 4, 4, 4, 3, 2, 2, 2], True, True),  # start 1, peak 4, end 2: two thirds lost
        ([0, 0, 0, 4, 4, 4, 3, 2, 2, 2], True, True),  # exactly half lost
        ([0, 0, 0, 4, 4, 4, 3, 2.1, 2.1, 2.1], True, False),
        ([-5.0] * 8 + [-1.0] * 8 + [-6.0] * 8, True, True),
    ],
)
def test_rise_and_collapse(values, rises, then_collapses):
    found = taken(values)
    assert (found.rises, found.rises_then_collapses) == (rises, then_collapses)


def test_levels_and_peak_by_hand():
    found = taken([0, 1, 2, 4, 5, 3, 3, 2, 1, 1])
    assert (found.start, found.peak, found.peak_step, found.end) == (
        1.0,
        4.0,
        3,
        1.0,
    )  # medians of 2,4,5 and of 4,5,3 are equal: the first


def test_a_fall_below_the_start_is_a_collapse_without_a_rise():
    found = taken([0.9] * 15 + [0.1] * 15)
    assert not found.rises_then_collapses
    assert found.collapses


def test_too_few_finite_points_cannot_tell():
    assert taken([0, 1, 2, 2, 1, 0]) is None
    assert taken([0, 1, 2, 2, 1, 0, math.inf]) is None
    assert taken([0, 1, 2, 2, 1, 0, 0]) is not None


def test_a_healthy_run(curves, moving):
    seen = checkup(
        curves(reward=[*RISE, *[0.9] * 10], kl=np.arange(30) * 1e-4, gradnorm=moving(1.0), ratio=moving(1.0))
    )
    assert seen.health is Health.HEALTHY
    assert seen.judged == {"kl": "steady", "ratio": "steady", "gradnorm": "steady", "reward": "holds"}


@pytest.mark.parametrize("name", ["kl", "gradnorm", "update_norm", "clip_fraction", "entropy"])
def test_a_curve_that_moves_is_trouble(curves, moving, name):
    assert checkup(curves(reward=moving(0.5), **{name: moving(0.5, 12)})).health is Health.TROUBLED


def test_a_falling_evaluation_and_a_flag_are_trouble(curves, moving):
    worse = curves(reward=moving(0.5), eval_math=moving(0.5, 15, 0.1))
    flagged = curves(reward=moving(0.5), collapse=[0.0] * 29 + [1.0])
    assert checkup(worse).health is checkup(flagged).health is Health.TROUBLED
    assert collapses(worse)
    assert collapses(flagged)
    assert collapse_step(flagged) == 29
    assert collapse_step(worse) is None
    assert not collapses(curves(reward=moving(0.5), collapse=[0.0] * 30))


def test_nothing_judged_or_nothing_confirmed_cannot_tell(curves, moving):
    short = checkup(curves(reward=[0.1, 0.2, 0.3], kl=[0.1, 0.1, 0.1]))
    assert short.health is Health.CANNOT_TELL
    assert short.unjudged == {"kl": 3, "reward": 3}
    assert checkup(curves(kl=moving(0.1, 28), reward=moving(0.5))).health is Health.CANNOT_TELL


def test_missing_points_are_left_out(curves):
    gaps = [1.0, math.nan] * 10 + [9.0, math.nan] * 5
    assert checkup(curves(gradnorm=gaps)).health is Health.TROUBLED
    assert checkup(curves(gradnorm=[math.nan] * 20)).health is Health.CANNOT_TELL

"""Bars worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from xcfg.cli.drift_profile import PARTS, drift_profile
from xcfg.report.sparkline import sparkline


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([0.0, 1.0, 2.0, 4.0, 8.0], "▁▂▃▅█"),  # eighths of 8: 0, 1, 2, 4, and the top
        ([0.0, 0.0], "▁▁"),
        ([None, 3.0, None], " █ "),
        ([], ""),
    ],
)
def test_bars(values, bars) -> None:
    assert sparkline(values) == bars


def test_bars_in_ascii() -> None:
    assert sparkline([0.0, 4.0, 8.0, None], plain=True) == "_=# "


def _outcome(position, drift):
    tokens = SimpleNamespace(
        position=np.array(position),
        rollout_logp=np.full(len(position), -2.0, dtype=np.float32),
        train_logp=np.array(drift, dtype=np.float32) - 2.0,
    )
    return SimpleNamespace(tokens=tokens)


def test_parts_are_equal_and_hold_their_largest_drift() -> None:
    """32 positions in 16 parts: two a part."""
    drift = [0.0] * 32
    drift[0], drift[1], drift[31] = 0.25, -0.5, 1.0
    found = drift_profile(_outcome(range(32), drift))
    assert found == [0.5] + [0.0] * 14 + [1.0]


def test_parts_without_a_finite_token_are_empty() -> None:
    found = drift_profile(_outcome([0, 15], [float("nan"), 0.25]))
    assert found == [None] * 15 + [0.25]
    assert len(found) == PARTS


def test_fewer_tokens_than_parts_are_a_part_each() -> None:
    assert drift_profile(_outcome([0, 1, 2], [0.5, 0.25, 1.0])) == [0.5, 0.25, 1.0]


def test_nothing_compared_has_no_profile() -> None:
    assert drift_profile(SimpleNamespace(tokens=None)) == []
    assert drift_profile(_outcome([], [])) == []

"""Statistics of values far larger than their spread, where a formula that cancels has no digit left."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xcfg.comparator.names.running import Correlation


def test_the_correlation_of_large_values_that_hardly_vary():
    """Less their common part x is 0, 1, 2 and y is 0, 1, 3: 3 / sqrt(2 * 14 / 3). The mean of y is no float64."""
    found = Correlation()
    found.add(1e9 + np.array([0.0, 1.0, 2.0]), 1e9 + np.array([0.0, 1.0, 3.0]))
    assert found.value == pytest.approx(3.0 / math.sqrt(28.0 / 3.0), rel=1e-6)
    swapped = Correlation()
    swapped.add(1e9 + np.array([0.0, 1.0, 3.0]), 1e9 + np.array([0.0, 1.0, 2.0]))
    assert swapped.value == pytest.approx(3.0 / math.sqrt(28.0 / 3.0), rel=1e-6)

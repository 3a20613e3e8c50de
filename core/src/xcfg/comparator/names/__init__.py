"""Metrics under the names and formulas of training frameworks, over the tokens that our own metrics read."""

from __future__ import annotations

from xcfg.comparator.names.frameworks import FRAMEWORKS, named_metrics
from xcfg.comparator.names.metric import NamedMetric

__all__ = ["FRAMEWORKS", "NamedMetric", "named_metrics"]

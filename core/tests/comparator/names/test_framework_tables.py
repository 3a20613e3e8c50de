"""What the tables promise of every framework, and what streaming must not change."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from xcfg.comparator.drift import drift
from xcfg.comparator.names import FRAMEWORKS, NamedMetric, named_metrics
from xcfg.model.result import METRIC_NAMES

EACH = pytest.mark.parametrize("framework", sorted(FRAMEWORKS))


@EACH
def test_names_are_unique_and_in_table_order(framework, ragged):
    names = [metric.name for metric in FRAMEWORKS[framework]]
    assert len(set(names)) == len(names)
    assert list(named_metrics(framework, ragged(5))) == names


@EACH
def test_a_row_names_its_source_and_only_metrics_of_ours(framework):
    for metric in FRAMEWORKS[framework]:
        assert re.fullmatch(r"https://github\.com/[^/]+/[^/]+/blob/(v[\d.]+|[0-9a-f]{40})/\S+", metric.source)
        assert metric.ours in {"", *METRIC_NAMES}
        assert not metric.differs or metric.differs.endswith(".")


@EACH
def test_a_metric_that_does_not_differ_has_our_value(framework, ragged):
    pairs = ragged(6)
    ours, found = drift(pairs, (0.8, 1.2)).metrics, named_metrics(framework, pairs)
    same = {metric.name: ours[metric.ours] for metric in FRAMEWORKS[framework] if metric.ours and not metric.differs}
    assert same
    assert {name: found[name] for name in same} == pytest.approx(same, rel=1e-12)


@EACH
def test_a_metric_that_differs_has_another_value(framework, ragged):
    pairs = ragged(6)
    ours, found = drift(pairs, (0.8, 1.2)).metrics, named_metrics(framework, pairs)
    # these part from ours only for drift that the pairs do not have
    bounded = {"rollout_corr/chi2_token", "rollout_corr/rollout_is_min", "sampling_importance_ratio"}
    for metric in FRAMEWORKS[framework]:
        if metric.differs and metric.name not in bounded:
            assert found[metric.name] != pytest.approx(ours[metric.ours], rel=1e-6), metric.name


@EACH
@pytest.mark.parametrize("spread", [1e-7, 1e-3, 0.3])
def test_block_boundaries_change_nothing(framework, ragged, spread):
    whole = named_metrics(framework, ragged(7, rows=60, spread=spread, per_block=60))
    for per_block in (1, 2, 7, 59):
        cut_here = named_metrics(framework, ragged(7, rows=60, spread=spread, per_block=per_block))
        assert cut_here == pytest.approx(whole, rel=1e-12, abs=1e-22)


@EACH
@pytest.mark.parametrize("d", [1e4, -1e4, 700.0, -700.0])
def test_extreme_drift_is_quiet_and_leaves_out_what_overflows(framework, cut, d):
    rollout = [[-1.0, -2.0], [-1e4 if d > 0 else -1.0, -0.5]]
    train = [[-1.5, -2.0], [rollout[1][0] + d, -0.25]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = named_metrics(framework, cut(rollout, train))
    assert all(np.isfinite(value) for value in found.values())
    assert found


@EACH
def test_sums_of_opposite_rows_beyond_the_float_range_are_quiet_however_numpy_is_set(framework, cut):
    """The sums of d are inf in one row and -inf in the other, of which there is no mean; exp(-745) underflows."""
    far = [-1.7e308, -1.7e308]
    pairs = cut([[0.0, 0.0], far, [0.0]], [far, [0.0, 0.0], [-745.0]], per_block=3)
    with np.errstate(all="raise"):
        found = named_metrics(framework, pairs)
    assert all(np.isfinite(value) for value in found.values())
    assert "rollout_corr/log_ppl_diff" not in found


@EACH
def test_no_token_has_no_metrics(framework, cut):
    with pytest.raises(ValueError, match=r"^a framework's metrics need at least one active token$"):
        named_metrics(framework, cut([], []))


def test_a_difference_without_a_counterpart_is_refused():
    with pytest.raises(ValueError, match="needs the name of our metric"):
        NamedMetric(name="a", formula="b", source="c", differs="Otherwise.")

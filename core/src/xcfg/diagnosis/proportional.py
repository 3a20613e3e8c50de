"""Drift in proportion to abs(logp)."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.floor import ROOM, TYPICAL
from xcfg.diagnosis.found import LEAST_NATS, Found
from xcfg.diagnosis.likelihood import MEDIAN, gain, spread, widened
from xcfg.diagnosis.view import View

FEWEST = 48
STEEP = (0.75, 1.3)
"""Exponents of abs(logp) that count as proportional; noise and other weights level off above a nat."""


def proportional(view: View) -> Found | None:
    """D is a constant part of logp; or its size is, whatever its sign."""
    if view.tokens < FEWEST:
        return None
    return _exact(view) or _by_size(view)


def _exact(view: View) -> Found | None:
    far = np.abs(view.x) > max(0.3, float(np.quantile(np.abs(view.x), 0.5)))
    if far.sum() < FEWEST // 3:
        return None
    part = float(np.median(view.d[far] / view.x[far]))
    left = view.d - part * view.x
    rest = spread(left[far] / view.floor.scale[far])
    uneven = float(np.median(np.abs(view.d[far] / view.x[far] - part)))
    if uneven > 0.3 * abs(part) or rest > 0.4 * spread(view.z[far]):
        return None
    nats = gain(view.z, left / view.floor.scale) - 10.0
    if nats < LEAST_NATS:
        return None
    evidence = {"part_of_logp": part, "interquartile_part": uneven, "left_in_floors": rest}
    return Found(kind="proportional", gain=nats, left=left, evidence=evidence)


def _by_size(view: View) -> Found | None:
    edges = np.array([0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0])
    place = np.searchsorted(edges, view.uncertain)
    bins = [b for b in range(1, len(edges)) if np.count_nonzero(place == b) >= 12]
    if len(bins) < 3 or edges[bins[-1]] / edges[bins[0] - 1] < 3.0:
        return None
    level = np.array([np.median(view.size[place == b]) for b in bins])
    centre = np.array([np.median(view.uncertain[place == b]) for b in bins])
    weight = np.sqrt([np.count_nonzero(place == b) for b in bins])
    if (level <= 0).any():
        return None
    slope, at = np.polyfit(np.log(centre), np.log(level), 1, w=weight)
    off = float(np.sqrt(np.mean((np.log(level) - slope * np.log(centre) - at) ** 2)))
    part = float(np.median(level / centre)) / MEDIAN
    typical = view.floor.typical if view.floor.dtype in TYPICAL else TYPICAL["bfloat16"]
    if level[-1] < 2.0 * ROOM * typical:
        return None
    sure = view.size[view.uncertain < 0.1]
    near = float(np.median(sure)) if len(sure) >= 8 else 0.0
    if not STEEP[0] <= slope <= STEEP[1] or off > 0.3 or near > 0.4 * level[0]:
        return None
    scale = np.maximum(part * view.uncertain, view.floor.scale)
    z = view.size / scale
    nats = view.plain - float((2.0 * np.log1p(z * z / 3.0) + np.log(scale / view.floor.scale)).sum()) - 12.0
    if nats < max(LEAST_NATS, widened(view.z) + 10.0):
        return None
    left = np.sign(view.d) * np.minimum(view.size, view.floor.scale)
    return Found(
        kind="proportional",
        gain=nats,
        left=left,
        confidence="medium",
        evidence={"exponent": float(slope), "size_over_logp": part, "off_a_power": off, "median_at_sure": near},
    )

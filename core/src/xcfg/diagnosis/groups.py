"""Whole rows: those with padding, those packed behind others, those of some ranks, or just some of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from xcfg.diagnosis.found import Found
from xcfg.diagnosis.regions import choice, region
from xcfg.diagnosis.view import View
from xcfg.model.json import Json

ROW_NATS = 4.0
SURE = 5.0
"""Nats by which chance would name other rows, from which a group of metadata is named with high confidence."""
AGREES = 0.75
"""Of the drifting rows this part is in the group, and of the group this part drifts."""
Group = tuple[str, np.ndarray, dict[str, Json], float]


def groups(view: View) -> list[Found]:
    """Each set of rows that drifts in all its tokens: as metadata name it, and as the rows themselves do."""
    if view.rows < 2:
        return []
    hot = view.sums > ROW_NATS
    found = [_named(view, group, hot) for group in _metadata(view)]
    count = int(hot.sum())
    if 0 < count < view.rows:
        evidence: dict[str, Json] = {
            "rows": count,
            "of_rows": view.rows,
            "first_rows": np.flatnonzero(hot)[:8].tolist(),
        }
        evidence |= _place_in_batch(view, hot)
        price = choice(view.rows, count) + 3.0
        found.append(region(view, "sequences", view.of_rows(hot), price, evidence))
    return [item for item in found if item]


def _named(view: View, group: Group, hot: np.ndarray) -> Found | None:
    kind, rows, evidence, price = group
    count = int(rows.sum())
    if not 0 < count < view.rows:
        return None
    both = int(np.count_nonzero(rows & hot))
    drifting = int(np.count_nonzero(hot))
    grows = evidence.get("correlation_with_padding")
    part = both / count
    if (drifting and both / drifting < AGREES) or (part < AGREES and not (grows and grows > 0.5 and part > 0.4)):
        return None
    chance = math.lgamma(view.rows + 1) - math.lgamma(count + 1) - math.lgamma(view.rows - count + 1)
    facts = {"rows": count, "of_rows": view.rows, "rows_drifting": drifting, "drifting_in_group": both}
    confidence = "high" if chance > SURE else "medium" if chance > 2.0 else "low"
    return region(view, kind, view.of_rows(rows), price, {**facts, **evidence}, confidence=confidence)


def _metadata(view: View) -> Iterator[Group]:
    rows = view.observed.rows
    if rows.padding is not None:
        padded = rows.padding > 0
        grown = _correlation(rows.padding[padded], view.sums[padded] / rows.length[padded])
        yield "left-padding", padded, {"correlation_with_padding": grown}, 2.0
    if rows.batch is not None:
        _, first = np.unique(rows.batch, return_index=True)
        later = np.ones(view.rows, dtype=bool)
        later[first] = False
        yield "packed-positions", later, {"batches": len(first)}, 2.0
    for name, ranks in (("rollout", rows.rollout_rank), ("training", rows.train_rank)):
        if ranks is not None:
            yield from _ranks(view, name, ranks)


def _ranks(view: View, name: str, ranks: np.ndarray) -> Iterator[Group]:
    """The ranks whose rows win nats, as one group."""
    ids, place = np.unique(ranks, return_inverse=True)
    if len(ids) < 2:
        return
    won = np.bincount(place.ravel(), weights=view.sums, minlength=len(ids)) > 0
    if 0 < won.sum() < len(ids):
        evidence: dict[str, Json] = {"side": name, "ranks": ids[won][:16].tolist(), "of_ranks": len(ids)}
        yield "rank", won[place.ravel()], evidence, choice(len(ids), int(won.sum())) + 2.0


def _correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    if len(a) < 4 or np.std(a) == 0 or np.std(b) == 0:
        return None
    first, second = (np.argsort(np.argsort(values)).astype(np.float64) for values in (a, b))
    return float(np.corrcoef(first, second)[0, 1])


def _place_in_batch(view: View, hot: np.ndarray) -> dict[str, Json]:
    """How far into its batch a drifting row stands in the mean, 0 the first and 1 the last."""
    batch = view.observed.rows.batch
    if batch is None:
        return {}
    order = np.argsort(batch, kind="stable")
    ids = batch[order]
    first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    size = np.diff(np.append(first, len(ids)))
    place = np.empty(view.rows)
    place[order] = (np.arange(view.rows) - np.repeat(first, size)) / np.maximum(np.repeat(size, size) - 1, 1)
    return {
        "place_in_batch_of_drifting": float(place[hot].mean()),
        "place_in_batch_of_others": float(place[~hot].mean()),
    }

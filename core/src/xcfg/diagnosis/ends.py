"""Only the last or the first tokens of the rows: packing, a label roll, a first token without its prompt."""

from __future__ import annotations

import math

import numpy as np

from xcfg.diagnosis.found import Found
from xcfg.diagnosis.regions import region
from xcfg.diagnosis.view import View

LONGEST = 4
"""Tokens of an end."""


def ends(view: View) -> Found | None:
    """The last or first k tokens of the rows, k up to 4, in rows that are longer."""
    starts, lengths = view.observed.starts, view.observed.rows.length
    here = np.arange(view.tokens) - np.repeat(starts, lengths)
    long = np.repeat(lengths, lengths)
    found = []
    for kind, distance in (("boundary-end", long - 1 - here), ("boundary-start", here)):
        scores = [float(view.score[(distance == k) & (long > k + 1)].sum()) for k in range(LONGEST)]
        k = int(np.argmax(np.cumsum(scores))) + 1
        inside = (distance < k) & (long > k)
        rows = int(np.count_nonzero(lengths > k))
        hot = int(np.count_nonzero(view.by_row((inside & view.hot).astype(np.int64))))
        if hot < min(3, rows) or hot < 0.1 * rows:
            continue
        evidence = {"tokens_of_each_row": k, "rows": rows, "rows_drifting_there": hot}
        found.append(region(view, kind, inside, math.log(2 * LONGEST) + 2.0, evidence))
    return max((item for item in found if item), key=lambda item: item.gain, default=None)

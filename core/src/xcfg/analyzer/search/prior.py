"""How likely it is that a pool of knobs may go back to production, if the causes are few and any knob may be one.

The model behind the order of work, never behind a claim: an alignment passes when it contains every cause, the number
of causes is geometric with ratio 1/5, and every set of that many knobs is equally likely to be the causes. What is
known by then is how many causes are found, disjoint groups that each hold at least one, and knobs of which nothing is
known. Asking whether a pool holds a cause is group testing; halving a group that does is generalised binary splitting
(F. K. Hwang, 1972, https://doi.org/10.1080/01621459.1972.10481257), here with pool sizes from the posterior.
"""

from __future__ import annotations

import math
from functools import cache

RATIO = 0.2
"""Each further cause is a fifth as likely: one cause is the commonest case, and costs no more than bisection."""

TAIL = 24
"""Numbers of further causes that are summed; the rest weighs nothing."""


@cache
def weight(knobs: int, found: int, groups: tuple[int, ...], rest: int) -> float:
    """Unnormalised probability of what is known, relative to ``found`` causes in all.

    Sets of d causes that hold the ``found`` ones and hit every group are counted by inclusion and exclusion over the
    groups (sizes), the remaining members drawn from the groups and from ``rest`` further knobs.
    """
    total = 0.0
    for further in range(min(knobs - found, TAIL) + 1):
        if found + further == 0:
            continue
        sets = 0
        for missed in range(1 << len(groups)):
            pool = rest + sum(size for at, size in enumerate(groups) if not missed >> at & 1)
            sets += (-1) ** missed.bit_count() * math.comb(pool, further)
        total += RATIO**further * sets * (math.comb(knobs, found) / math.comb(knobs, found + further))
    return total


@cache
def clean(knobs: int, found: int, groups: tuple[int, ...], rest: int, size: int) -> float:
    """Probability that ``size`` knobs of the first group, or of ``rest`` where there is none, hold no cause."""
    known = weight(knobs, found, groups, rest)
    if groups and groups[0] == size:
        return 0.0
    after = (groups[0] - size, *groups[1:]) if groups else groups
    return weight(knobs, found, after, rest if groups else rest - size) / known if known else 0.0


def surprise(probability: float) -> float:
    """What the answer to a yes-or-no question tells, in bits."""
    if not 0.0 < probability < 1.0:
        return 0.0
    other = 1.0 - probability
    return -(probability * math.log2(probability) + other * math.log2(other))

"""How large a fault is: from the least that an expert could still tell, to gross.

A disturbed state stands for whatever is not quite right inside one side. ``FLOOR`` is the disturbance, as a share of
the state's length, that moves the logprobs as much on average as the ordinary noise of the dtype does
(``core/tests/testing`` measures it anew). Over n tokens the mean |d| of noise has a standard error of about 2 means
over sqrt(n), for its tail is heavy. So:

- ``BROAD`` = 4 floors, where a tenth of the tokens or more is touched: 200 tokens at 4 times the noise stand out
  from it by more than ten standard errors;
- ``NARROW`` = 12 floors, where a token or a few a row are: half of any few tokens are near certain and do not move,
  and the dozen that do must each be beyond the 99th percentile of the noise, about ten times its mean.

Nothing is below: a smaller fault is there, and nobody could know from the numbers.
"""

from __future__ import annotations

from xcfg.testing.scenarios.draft import Draft

FLOOR = {"float32": 5e-7, "float16": 1.3e-3, "bfloat16": 1.05e-2}
BROAD, NARROW = 4.0, 12.0
GROSS = 0.5
NATS = {"float32": 2.7e-7, "float16": 7.5e-4, "bfloat16": 6e-3}
"""Mean |d| of ordinary noise, nats."""


def disturbance(draft: Draft, floors: float = BROAD) -> float:
    """A share of the state's length between ``floors`` floors of the dtype and gross."""
    low = FLOOR[draft.shape.dtype] * floors * (3 if draft.loud else 1)
    return draft.between(low, max(GROSS, 2 * low))


def nats(draft: Draft, floors: float = BROAD, gross: float = 1.0) -> float:
    """A difference between ``floors`` means of the dtype's noise and ``gross``, nats."""
    return draft.between(NATS[draft.shape.dtype] * floors, gross)

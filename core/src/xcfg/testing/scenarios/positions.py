"""Position ids that are wrong for some rows, or beyond some length."""

from __future__ import annotations

import numpy as np

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.layout import Wants
from xcfg.testing.scenarios.magnitude import disturbance
from xcfg.testing.scenarios.scenario import scenario

PADDED, PACKED = Wants(packed=False), Wants(packed=True)


@scenario("left-padding-mask", "left-padding", cause=("T7",), keep=("padding",), wants=PADDED)
def padding_mask(draft: Draft) -> None:
    """Rows with padding at their left drift, however little it is: the mask is off by one."""
    draft.disturb(draft.training, (draft.column("padding") > 0)[draft.row], disturbance(draft))


@scenario("left-padding-growing", "left-padding", cause=("T7",), keep=("padding",), wants=PADDED)
def padding_growing(draft: Draft) -> None:
    """Rows with padding drift, the more the wider it is: learned positions count the padding."""
    padding = draft.column("padding")
    share = padding / max(1, padding.max())
    draft.disturb(draft.training, share[draft.row], 2 * disturbance(draft))


@scenario("left-padding-unrecorded", "sequences", cause=("T7",), accept=("left-padding", "unknown"), wants=PADDED)
def padding_unrecorded(draft: Draft) -> None:
    """The same, kept or not: without the padding one can only see that it is some rows, all of each."""
    draft.disturb(draft.training, (draft.column("padding") > 0)[draft.row], 2 * disturbance(draft))


def _order(draft: Draft) -> np.ndarray:
    """(R,) tokens of its batch that lie before each row."""
    batch, length = draft.column("batch"), draft.rows.length + draft.column("prompt_length")
    before = np.cumsum(length) - length
    first = np.searchsorted(batch, batch)
    offset: np.ndarray = before - before[first]
    return offset


@scenario("packed-all", "packed-positions", cause=("T8",), keep=("batch",), wants=PACKED)
def packed_all(draft: Draft) -> None:
    """Every row of a pack but the first drifts: rotary offsets ignore where the rows start."""
    draft.disturb(draft.training, (_order(draft) > 0)[draft.row], disturbance(draft))


@scenario("packed-growing", "packed-positions", cause=("T8",), keep=("batch",), wants=PACKED)
def packed_growing(draft: Draft) -> None:
    """The same, growing with the offset of the row in its pack."""
    offset = _order(draft)
    draft.disturb(draft.training, (offset / max(1, offset.max()))[draft.row], 2 * disturbance(draft))


def _beyond(draft: Draft, count: np.ndarray, *, ramp: bool) -> None:
    edge = float(np.quantile(count, draft.generator.uniform(0.45, 0.8)))
    over = np.clip((count - edge) / max(1.0, count.max() - edge), 0, 1)
    draft.facts["edge"] = edge
    draft.disturb(
        draft.either(), over if ramp else (count >= edge).astype(float), (3 if ramp else 1) * disturbance(draft)
    )


@scenario("length-context", "length", keep=("prompt_length",))
def length_context(draft: Draft) -> None:
    """Fine up to a length of prompt and response together, then all rows drift: one side scales rotary positions."""
    _beyond(draft, draft.position + draft.column("prompt_length")[draft.row], ramp=False)


@scenario("length-response", "length")
def length_response(draft: Draft) -> None:
    """The same, counted from the start of the response: an engine's window of decoded tokens."""
    _beyond(draft, draft.position, ramp=False)


@scenario("length-ramp", "length", keep=("prompt_length",))
def length_ramp(draft: Draft) -> None:
    """Drift that begins at a length and grows from there: positions extrapolated by other rules."""
    _beyond(draft, draft.position + draft.column("prompt_length")[draft.row], ramp=True)

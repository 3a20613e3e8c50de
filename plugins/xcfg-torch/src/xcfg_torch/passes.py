"""The forward passes of a scoring call, those that went on from kept keys joined to the one that began them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xcfg_torch.forward_seen import ForwardSeen
    from xcfg_torch.live import Live


def passes(live: Live) -> list[list[ForwardSeen]]:
    """One list a step: a pass without cached columns begins a step, one with them goes on with it."""
    found: list[list[ForwardSeen]] = []
    for item in live.seen.forwards:
        if item.past and found:
            found[-1].append(item)
        else:
            found.append([item])
    return found


def widths_borne_out(live: Live) -> bool:
    """Whether every step passed in the columns its route plans, each pass after all the columns before it."""
    seen = passes(live)
    if [tuple(item.width for item in step) for step in seen] != live.widths:
        return False
    return all(_gapless(step) for step in seen) and live.seen.cached is live.route.cached


def _gapless(step: list[ForwardSeen]) -> bool:
    past = 0
    for item in step:
        if item.past != past:
            return False
        past += item.width
    return True

"""Values in force of the route that rows took through the model, and of what it kept on the way."""

from __future__ import annotations

from collections.abc import Callable

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_torch.compiling import is_compiled
from xcfg_torch.live import Live
from xcfg_torch.passes import passes, widths_borne_out
from xcfg_torch.readback_scored import NOT_SCORED, Observed
from xcfg_torch.route_fault import CACHED_DECODE, CHUNKED_PREFILL, WHOLE


def _borne_out(read: Callable[[Live], Observed]) -> Callable[[Live], Observed]:
    """``read`` where the passes that were seen are those of the route in force."""

    def checked(live: Live) -> Observed:
        if not live.seen.forwards:
            return NOT_SCORED
        if widths_borne_out(live):
            return read(live)
        shapes = [[item.width for item in step] for step in passes(live)]
        return Unobservable(f"passes of {shapes} columns do not come from {live.route}")

    return checked


@_borne_out
def forward(live: Live) -> Observed:
    """The route: ``whole`` without a cache; what the widths of the passes bear out with one."""
    if live.route.decode:
        return CACHED_DECODE
    return CHUNKED_PREFILL if live.seen.cached else WHOLE


@_borne_out
def prefill_chunk(live: Live) -> Observed:
    """Most columns of a pass in force; without any the widest pass, which then was a whole prompt or row."""
    return live.route.chunk or max(item.width for item in live.seen.forwards)


@_borne_out
def scoring_path(live: Live) -> Observed:
    """``forced_decode`` where response tokens passed one at a time after their prompts, else ``prefill``."""
    return "forced_decode" if live.route.decode else "prefill"


@_borne_out
def chunked_prefill(live: Live) -> Observed:
    """Whether prefill passes were held to a number of columns."""
    return live.route.chunk is not None


def prefix_cache(live: Live) -> Observed:
    """False where every step began without a cached column; one that did not had keys of an earlier call."""
    if not live.seen.forwards:
        return NOT_SCORED
    began = sum(item.past == 0 for item in live.seen.forwards)
    return began != len(live.steps) or live.seen.forwards[0].past > 0


def kv_cache_dtype(live: Live) -> Observed:
    """Dtype of the keys that were kept; ``none``: no cache existed."""
    if not live.seen.forwards:
        return NOT_SCORED
    if live.seen.cached:
        return "+".join(sorted(live.seen.cache)) or Unobservable("the cache shows no keys")
    return "none"


def sdpa_kernel(live: Live) -> Observed:
    """The kernel that torch's fused attention dispatched: ``none`` where it was not called, ``compiled`` where the call
    became a part of a compiled layer.
    """
    if not live.seen.forwards:
        return NOT_SCORED
    if "sdpa" not in live.seen.attention:
        return "none"
    if not live.seen.kernels and any(is_compiled(module) for module in live.model.modules()):
        return "compiled"
    return "+".join(sorted(live.seen.kernels)) or Unobservable(
        "no call of torch's fused attention was seen to dispatch"
    )


def norm_kernel(live: Live) -> Observed:
    """Whether RMS norms ran as one function or spelt out; ``none`` where the model did neither."""
    return ("+".join(sorted(live.seen.norms)) or "none") if live.seen.forwards else NOT_SCORED


def head_dtype(live: Live) -> Observed:
    """Dtype of the input of the output head; ``none`` of a model without one."""
    return ("+".join(sorted(live.seen.head)) or "none") if live.seen.forwards else NOT_SCORED


OWN: dict[str, Callable[[Live], Observed | Json]] = {
    "torch.forward": forward,
    "torch.prefill_chunk": prefill_chunk,
    "torch.sdpa_kernel": sdpa_kernel,
    "torch.norm_kernel": norm_kernel,
    "torch.head_dtype": head_dtype,
}
"""Readers of the knobs of scorers whose model this plugin loads and passes by itself."""

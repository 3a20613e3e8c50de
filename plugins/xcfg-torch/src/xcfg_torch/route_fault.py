"""Settings of the forward pass that contradict each other; imports no torch, so that a plan can tell."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json

WHOLE = "whole"
CACHED_DECODE = "cached_decode"
CHUNKED_PREFILL = "chunked_prefill"
FORWARDS = (WHOLE, CACHED_DECODE, CHUNKED_PREFILL)


def route_fault(settings: Mapping[str, Json]) -> str:
    """Why no route fits these request settings (``forward``, ``scoring_path``, ``prefill_chunk``, ``packing``,
    ``position_ids``); empty where one does.
    """
    forward, chunk = settings.get("forward") or WHOLE, settings.get("prefill_chunk")
    decode = forward == CACHED_DECODE or settings.get("scoring_path") == "forced_decode"
    if forward == CHUNKED_PREFILL and chunk is None:
        return "torch.forward: chunked_prefill needs torch.prefill_chunk, the columns of a pass"
    if chunk is not None and forward == WHOLE and "scoring_path" not in settings:
        return "torch.prefill_chunk cuts rows into several passes, and torch.forward: whole takes one"
    if settings.get("packing") and (decode or chunk is not None):
        return "layout.packing: the sequences of a packed row pass whole, without kept keys and values"
    if decode and settings.get("position_ids") == "padded":
        return "layout.position_ids: a decoded token's position counts from the first token of its sequence"
    return ""

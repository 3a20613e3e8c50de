"""Combinations of settings that no torch scorer of this plugin can run, told while planning; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xcfg.model.case import SideConfig
from xcfg.model.json import Json
from xcfg_torch.route_fault import route_fault
from xcfg_torch.tp_limits import degree_fault

_REQUEST_KEYS = {
    "torch.forward": "forward",
    "torch.prefill_chunk": "prefill_chunk",
    "torch.rollout_prefill_chunk": "prefill_chunk",
    "rollout.scoring_path": "scoring_path",
    "layout.packing": "packing",
    "layout.position_ids": "position_ids",
}


def side_fault(side: SideConfig) -> str:
    """Why a side of this plugin cannot run as configured; empty where it can."""
    knobs = side.knobs
    asked = {key: knobs[name] for name, key in _REQUEST_KEYS.items() if name in knobs}
    return route_fault(asked) or _chunk_fault(knobs) or _packing_fault(knobs) or _compile_fault(knobs) or _degree(side)


def _chunk_fault(knobs: Mapping[str, Json]) -> str:
    asked, chunk = knobs.get("rollout.chunked_prefill"), knobs.get("torch.rollout_prefill_chunk")
    if asked is None or bool(asked) is (chunk is not None):
        return ""
    if asked:
        return "rollout.chunked_prefill: a torch rollout needs torch.rollout_prefill_chunk, the columns of a pass"
    return "torch.rollout_prefill_chunk cuts prompts into several passes, and rollout.chunked_prefill: false takes one"


def _packing_fault(knobs: Mapping[str, Json]) -> str:
    if knobs.get("layout.packing") and knobs.get("layout.position_ids") == "padded":
        return "layout.position_ids: a packed row has no padding that positions could count from"
    return ""


def _compile_fault(knobs: Mapping[str, Json]) -> str:
    if knobs.get("torch.sdpa_kernel") and knobs.get("training.attention_backend") == "eager":
        return "torch.sdpa_kernel: eager attention does not call torch's fused attention"
    if not knobs.get("training.compile"):
        return ""
    if knobs.get("torch.forward") not in (None, "whole"):
        return "training.compile: a compiled layer is compiled anew for every length of kept keys"
    for name in ("torch.sdpa_kernel", "torch.head_dtype"):
        if knobs.get(name):
            return f"{name}: what runs inside a compiled layer is not seen, so nothing would prove it"
    return ""


def _degree(side: SideConfig) -> str:
    """Of a checkpoint that lies where its path says; one relative to the experiment is read before the launch."""
    size = side.knobs.get("training.tensor_parallel_size")
    return degree_fault(Path(side.checkpoint.path).expanduser(), size) if isinstance(size, int) else ""

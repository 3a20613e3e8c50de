"""Which LoRA adapters one worker holds in force, and on which parts of its layers, from the live modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def adapter_facts(model: torch.nn.Module, runner: Any) -> dict[str, Any] | None:
    """``active``: ids of the adapters in the worker's slots; ``layers``: parts whose factors are not zero.

    Names are a checkpoint's. None where the worker was not made for adapters.
    """
    manager = getattr(getattr(runner, "lora_manager", None), "_adapter_manager", None)
    if manager is None:
        return None
    slots = {slot: held for slot, held in enumerate(manager.lora_index_to_id) if held is not None}
    fused = getattr(model, "packed_modules_mapping", None) or {}
    layers: set[str] = set()
    for name, module in model.named_modules():
        stacked = getattr(module, "lora_a_stacked", None)
        if not isinstance(stacked, tuple):
            continue
        stem, _, last = name.rpartition(".")
        parts = fused.get(last, (last,))
        for part, factor in zip(parts, stacked, strict=True):
            if any(bool(factor[slot].any()) for slot in slots):
                layers.add(f"{stem}.{part}")
    return {"active": sorted(slots.values()), "layers": sorted(layers)}

"""Which quantisations of the weights vLLM can be asked for on this machine, and which one a worker runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.codec import unknown
from xcfg_vllm.model_config import quantised_as

UNQUANTISED = "none"


def quantization_reason(name: str, checkpoint: str | None) -> str | None:
    """Why vLLM cannot quantise by ``name`` here; None where it may. ``checkpoint``: the model's folder, if known.

    Raises InvalidInput for a folder that is no model's.
    """
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
    from vllm.platforms import current_platform

    if name not in QUANTIZATION_METHODS:
        return f"to vLLM this is an {unknown('quantization', name, QUANTIZATION_METHODS)}"
    if current_platform.is_cpu() and checkpoint and quantised_as(Path(checkpoint)) is None:
        return f"vLLM has no CPU kernel for {name} of weights that the checkpoint does not hold quantised already"
    return None


def quantization_of(worker: Mapping[str, Any]) -> str | Unobservable:
    """The method a worker settled on; :data:`UNQUANTISED` where no layer follows one, whatever it settled on."""
    methods = set(worker["weights"]["quant_methods"].values())
    layers = sorted(name for name in methods if name and not name.startswith("Unquantized") and "KVCache" not in name)
    if not layers:
        return UNQUANTISED
    settled = worker["quantization"]
    return settled or Unobservable(f"the worker settled on no method, and its layers have {', '.join(layers)}")

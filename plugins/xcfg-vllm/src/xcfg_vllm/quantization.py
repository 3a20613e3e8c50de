"""Which quantisations of the weights vLLM can be asked for on this machine, and which one its workers run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import ismethod
from pathlib import Path
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.codec import unknown
from xcfg_vllm.declared_layers import PLAIN, declared_forms
from xcfg_vllm.model_config import quantised_as

UNQUANTISED = "none"

FOUR_BIT_KERNEL = "cpu_gemm_wna16"
"""vLLM's CPU operator for 4-bit weights, which its builds for AVX2 lack."""


def quantization_reason(name: str | None, checkpoint: str | None) -> str | None:
    """Why vLLM cannot quantise by ``name`` here, or (None) compute the checkpoint as it is; None where it may.

    ``checkpoint``: the model's folder, if known. Raises InvalidInput for a folder that is no model's.
    """
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
    from vllm.platforms import current_platform

    if name is not None and name not in QUANTIZATION_METHODS:
        return f"to vLLM this is an {unknown('quantization', name, QUANTIZATION_METHODS)}"
    if not current_platform.is_cpu() or not checkpoint:
        return None
    if name is not None and quantised_as(Path(checkpoint)) is None:
        return f"vLLM has no CPU kernel for {name} of weights that the checkpoint does not hold quantised already"
    four_bits = any(form.startswith("w4") for form in declared_forms(Path(checkpoint)).values())
    return four_bit_reason() if four_bits else None


def dtype_reason(dtype: str | None, checkpoint: str | None) -> str | None:
    """Why vLLM does not compute the checkpoint's quantisation in ``dtype``; None where it does."""
    method = quantised_as(Path(checkpoint)) if checkpoint and dtype else None
    if method is None:
        return None
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS, get_quantization_config

    if method not in QUANTIZATION_METHODS:
        return f"to vLLM this is an {unknown('quantization', method, QUANTIZATION_METHODS)}"
    kind: Any = get_quantization_config(method)
    listed = kind.get_supported_act_dtypes  # of one method vLLM wrote it for instances
    taken = [str(item).removeprefix("torch.") for item in (listed() if ismethod(listed) else listed(kind))]
    return None if dtype in taken else f"vLLM computes {method} checkpoints in {' or '.join(taken)} only"


def four_bit_reason() -> str | None:
    """Why this build of vLLM cannot multiply 4-bit weights on this CPU; None where it can."""
    import torch
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    if hasattr(torch.ops._C, FOUR_BIT_KERNEL):
        return None
    return (
        f"vLLM's build for this CPU has no kernel for 4-bit weights ({FOUR_BIT_KERNEL}), as those for AVX-512 have: "
        "it would load the checkpoint and fail at the first forward pass"
    )


def quantization_of(worker: Mapping[str, Any]) -> str | Unobservable:
    """The method a worker settled on; :data:`UNQUANTISED` where no layer follows one, whatever it settled on."""
    methods = set(worker["weights"]["quant_methods"].values())
    layers = sorted(name for name in methods if name and not name.startswith("Unquantized") and "KVCache" not in name)
    if not layers:
        return UNQUANTISED
    settled = worker["quantization"]
    return settled or Unobservable(f"the worker settled on no method, and its layers have {', '.join(layers)}")


def layers_reason(workers: Sequence[Mapping[str, Any]], declared: Mapping[str, str]) -> str | None:
    """Where a layer of a worker is not computed as the checkpoint declares it, in any worker; None where all are.

    ``declared``: form by layer of a quantised checkpoint (:func:`~xcfg_vllm.declared_layers.declared_forms`).
    """
    if not declared:
        return None
    differing = [found for rank, worker in enumerate(workers) for found in _differing(rank, worker, declared)]
    if not differing:
        return None
    more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
    return differing[0] + more


def _differing(rank: int, worker: Mapping[str, Any], declared: Mapping[str, str]) -> Iterator[str]:
    seen: set[str] = set()
    for name, layer in worker["linears"].items():
        parts = layer["parts"] or [name]
        seen.update(parts)
        for part in parts:
            form = declared.get(part, PLAIN)
            if form != layer["form"]:
                held = "/".join(filter(None, (layer["method"], layer["scheme"], layer["kernel"])))
                runs = f"the worker runs {layer['form']} ({held})"
                yield f"{part} on worker {rank}: the checkpoint declares {form}, {runs}"
    for name, form in declared.items():
        if form != PLAIN and name not in seen:
            yield f"{name} on worker {rank}: the checkpoint declares {form}, and no layer of the worker bears the name"

"""How each linear layer of a checkpoint is quantised, as its ``config.json`` and its tensors declare it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xcfg.errors import InvalidInput
from xcfg_vllm.model_config import quantisation_entry
from xcfg_vllm.tensor_headers import TensorHeader, read_headers

PLAIN = "none"
"""The form of a layer whose weights are not quantised."""

_SUFFIXES = ("weight_packed", "qweight", "weight")


def declared_forms(folder: Path) -> Mapping[str, str]:
    """Form by layer, in the checkpoint's names; empty where the checkpoint is not quantised, or not as known here.

    A form is ``w8a8-int8``, ``w8a8-fp8``, ``w8a16-fp8``, ``w4a16`` or :data:`PLAIN`. Raises InvalidInput where
    ``config.json`` declares a quantisation that no tensor has.
    """
    entry = quantisation_entry(folder)
    headers = read_headers(folder)
    if not entry or not headers:
        return {}
    layers = {name.rpartition(".")[0]: name for name in headers if name.endswith(tuple(f".{s}" for s in _SUFFIXES))}
    forms = {layer: _form(headers[name], name.rpartition(".")[2], entry) for layer, name in layers.items()}
    if set(forms.values()) <= {PLAIN}:
        method = entry.get("quant_method")
        raise InvalidInput(
            f"config.json says the weights are quantised by {method}, and no tensor is",
            where=str(folder),
            hint="take quantization_config out, or the files of the quantised model in",
        )
    return forms


def _form(header: TensorHeader, suffix: str, entry: Mapping[str, Any]) -> str:
    if suffix == "qweight":
        return f"w{entry.get('bits', entry.get('w_bit', 4))}a16"
    weights, activations = _group(entry)
    if suffix == "weight_packed":
        return f"w{weights.get('num_bits')}a{_bits(activations)}"
    if header.dtype == "I8":
        return f"w8a{_bits(activations)}-int8"
    if header.dtype.startswith("F8"):
        static = entry.get("activation_scheme") in ("dynamic", "static")
        return f"w8a{8 if static else _bits(activations)}-fp8"
    return PLAIN


def _group(entry: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Weights and activations of the first group of layers; empty where there is none."""
    groups: Mapping[str, Any] = entry.get("config_groups") or {}
    first: Mapping[str, Any] = next(iter(groups.values()), {})
    return first.get("weights") or {}, first.get("input_activations") or {}


def _bits(activations: Mapping[str, Any]) -> int:
    return int(activations.get("num_bits") or 16)

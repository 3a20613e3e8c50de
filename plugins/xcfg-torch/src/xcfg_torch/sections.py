"""Digests of a model layer by layer, from the tensors a live engine holds, held against the checkpoint's files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcfg.errors import XcfgError

if TYPE_CHECKING:
    import torch

ENDS = "ends"
"""The section of what is in no layer: embedding, last norm, head."""
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
_WRAPPED = re.compile(r"\b_orig_mod\.")
"""What torch.compile puts between the names of modules."""


def tensor_digest(tensor: torch.Tensor) -> str:
    """SHA-256 over dtype, shape and bytes."""
    import torch

    state = hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)};".encode())
    state.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return state.hexdigest()


def section_digests(tensors: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """One SHA-256 a section over names and digests of its tensors; ``tensors`` is name to (section, digest)."""
    sections: dict[str, Any] = {}
    for name, (section, value) in sorted(tensors.items()):
        sections.setdefault(section, hashlib.sha256()).update(f"{name} {value};".encode())
    return {section: state.hexdigest() for section, state in sections.items()}


def held_sections(parameters: Iterable[tuple[str, Any]], folder: Path, loaded: torch.dtype) -> dict[str, str]:
    """The digest of each layer, and of both ends, as the live model holds them; sharded tensors are gathered.

    Bytes are counted in the checkpoint's own dtype: those of the file wherever the model's dtype keeps every value, so
    engines that hold one checkpoint in different dtypes agree. Every rank that holds a shard must call it. A parameter
    that no file names, because transformers renamed it, is left out. ``loaded`` is the dtype the model was loaded in: a
    head computed in a wider one holds values rounded to it. Raises XcfgError, naming the tensor, where the model holds
    another one than the file.
    """
    from safetensors import safe_open

    files: dict[str, Any] = {}
    for path in sorted(folder.glob("*.safetensors")):
        opened = safe_open(path, framework="pt")
        files |= dict.fromkeys(opened.keys(), opened)
    proven: dict[str, tuple[str, str]] = {}
    for label, parameter in parameters:
        name = _WRAPPED.sub("", label)
        if name in files:
            proven[name] = (_section(name), _proven(name, parameter, files[name].get_tensor(name), loaded))
    return section_digests(proven)


def _proven(name: str, parameter: Any, stored: torch.Tensor, loaded: torch.dtype) -> str:
    own = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
    there = tensor_digest(own.detach().to(stored.dtype))
    if there not in {tensor_digest(value.to(own.dtype).to(stored.dtype)) for value in (stored, stored.to(loaded))}:
        raise XcfgError(f"the live model holds another {name} than the checkpoint's file", where="checkpoint")
    return there


def _section(name: str) -> str:
    layer = _LAYER.search(name)
    return ENDS if layer is None else layer[1]

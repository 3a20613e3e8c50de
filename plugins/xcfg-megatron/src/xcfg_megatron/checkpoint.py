"""The safetensors of a model directory, tensor by tensor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from xcfg.errors import Fault, InvalidInput
from xcfg_megatron.geometry import Geometry
from xcfg_megatron.mapping import EMBEDDING, HEAD

if TYPE_CHECKING:
    import torch

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_SHOWN = 3


@frozen(kw_only=True)
class Tensors:
    """Where each tensor of a checkpoint is, and its shape."""

    files: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]

    def read(self, name: str) -> torch.Tensor:
        """The tensor, in the checkpoint's dtype."""
        tensor: torch.Tensor = self.files[name].get_tensor(name)
        return tensor


def open_tensors(folder: Path) -> Tensors:
    """The tensors of ``model.safetensors`` or of the shards its index names. Raises InvalidInput."""
    from safetensors import SafetensorError, safe_open

    files: dict[str, Any] = {}
    try:
        for path in _paths(folder):
            opened = safe_open(path, framework="pt")
            for name in opened.keys():  # noqa: SIM118 - no mapping
                if name in files:
                    raise InvalidInput(f"the tensor {name} is in two files", where=str(folder))
                files[name] = opened
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise InvalidInput(f"the weights cannot be read: {error}", where=str(folder)) from error
    shapes = {name: tuple(file.get_slice(name).get_shape()) for name, file in files.items()}
    return Tensors(files=files, shapes=shapes)


def _paths(folder: Path) -> list[Path]:
    if (folder / _SINGLE).is_file():
        return [folder / _SINGLE]
    if not (folder / _INDEX).is_file():
        raise InvalidInput(f"neither {_SINGLE} nor {_INDEX} is here", where=str(folder))
    index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    return [folder / name for name in sorted(set(index["weight_map"].values()))]


def check_tensors(tensors: Tensors, wanted: Mapping[str, tuple[int, ...]], shape: Geometry, where: str) -> None:
    """Raise InvalidInput, naming the tensors, unless the checkpoint has exactly what ``config.json`` calls for.

    A tied model may repeat its embedding as head, where the two are equal.
    """
    found = dict(tensors.shapes)
    if shape.tied and HEAD in found:
        _check_tied(tensors, where)
        del found[HEAD]
    missing, extra = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    wrong = [name for name in sorted(set(wanted) & set(found)) if found[name] != wanted[name]]
    hint = "tie_word_embeddings: false in config.json calls for a head of its own" if HEAD in missing else ""
    faults = [
        *(Fault(message=f"the tensor {name} is missing", where=where, hint=hint) for name in missing[:_SHOWN]),
        *(Fault(message=f"the tensor {name} belongs to no part of the model", where=where) for name in extra[:_SHOWN]),
        *(
            Fault(message=f"{name} has shape {found[name]}, config.json calls for {wanted[name]}", where=where)
            for name in wrong[:_SHOWN]
        ),
    ]
    if faults:
        raise InvalidInput(faults=faults)


def _check_tied(tensors: Tensors, where: str) -> None:
    import torch

    if EMBEDDING in tensors.shapes and not torch.equal(tensors.read(HEAD), tensors.read(EMBEDDING)):
        raise InvalidInput(
            f"{HEAD} differs from {EMBEDDING}, and config.json ties the two (tie_word_embeddings: true)",
            where=where,
            hint="set the flag to what the model was trained with",
        )

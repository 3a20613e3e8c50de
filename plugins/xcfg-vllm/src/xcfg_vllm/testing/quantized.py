"""Makes a quantised checkpoint from a base, and declares in it which base it came from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from xcfg.errors import InvalidInput
from xcfg.plugin import digest_checkpoint
from xcfg_vllm.testing.schemes import SCHEMES

DECLARATION = "xcfg-base.json"
SCHEMA = "xcfg.base/1"

_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "config.json", DECLARATION)


def make_quantized(base: Path, folder: Path, scheme: str) -> Path:
    """Quantise every linear layer inside the decoder of ``base`` and write the model directory ``folder``.

    Embedding, norms and head keep their values and dtype. The same base gives the same bytes. Raises InvalidInput for
    an unknown scheme, a folder that holds something, and a base that is quantised already.
    """
    import torch
    from safetensors.torch import load_file, save_file

    if scheme not in SCHEMES:
        raise InvalidInput(f"no scheme {scheme!r}: it is one of {', '.join(SCHEMES)}", where="scheme")
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput("the folder is not empty", where=str(folder))
    config: dict[str, Any] = json.loads((base / "config.json").read_text(encoding="utf-8"))
    if "quantization_config" in config:
        raise InvalidInput("this checkpoint is quantised already", where=str(base))
    chosen = SCHEMES[scheme]
    held: dict[str, torch.Tensor] = {}
    for file in sorted(base.glob("*.safetensors")):
        held |= load_file(file)
    written: dict[str, torch.Tensor] = {}
    for name, tensor in held.items():
        layer = name.removesuffix(".weight")
        if layer.endswith("_proj") and name.endswith(".weight"):
            written |= {f"{layer}.{suffix}": made.contiguous() for suffix, made in chosen.tensors(tensor).items()}
        else:
            written[name] = tensor
    folder.mkdir(parents=True, exist_ok=True)
    _copy_others(base, folder)
    save_file(dict(sorted(written.items())), folder / "model.safetensors", metadata={"format": "pt"})
    _write(folder / "config.json", {**config, "quantization_config": dict(chosen.config)})
    declare_base(folder, base, scheme)
    return folder


def declare_base(folder: Path, base: Path, quantization: str) -> None:
    """Write into ``folder`` which weights it was made from, by their digest, and how."""
    weights = digest_checkpoint(base).weights
    _write(folder / DECLARATION, {"schema": SCHEMA, "base": {"weights": weights}, "quantization": quantization})


def _copy_others(base: Path, folder: Path) -> None:
    left = {path for pattern in _WEIGHTS for path in base.glob(pattern)}
    for path in base.iterdir():
        if path.is_file() and path not in left and path.suffix in (".json", ".txt", ".model", ".jinja"):
            shutil.copyfile(path, folder / path.name)


def _write(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

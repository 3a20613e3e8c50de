"""A LoRA adapter's folder, held against the checkpoint it is to be used with before an engine is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from xcfg.errors import Fault, InvalidInput, UnsupportedError
from xcfg.model.codec import load_json
from xcfg.plugin import digest_checkpoint
from xcfg_vllm.adapter_identity import CONFIG, WEIGHTS, adapter_digest
from xcfg_vllm.tensor_headers import TensorHeader, read_headers

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks that vLLM makes room for; an adapter takes the smallest that holds its own."""

DECLARATION = "xcfg-base.json"

_PREFIX = "base_model.model."


@frozen(kw_only=True)
class Adapter:
    """``room``: rank that vLLM makes room for; ``layers``: adapted layers, the checkpoint's names; ``digest``
    of both files.
    """

    folder: Path
    room: int
    layers: tuple[str, ...]
    digest: str


def read_adapter(folder: Path, checkpoint: Path) -> Adapter:
    """Read a folder as PEFT writes it.

    Raises InvalidInput where it is no adapter or one of another base: its declaration names other weights, or a layer
    it adapts is not the checkpoint's, or of another shape. Raises UnsupportedError for what vLLM does not apply.
    """
    config = _config(folder)
    rank = config.get("r")
    if not isinstance(rank, int) or not 1 <= rank <= RANKS[-1]:
        raise InvalidInput(f"the adapter's rank is {rank!r}: vLLM takes 1 to {RANKS[-1]}", where=str(folder))
    for name, sentence in _UNSUPPORTED.items():
        if config.get(name):
            raise UnsupportedError(f"the adapter sets {name}: {sentence}", where=str(folder))
    _check_declaration(folder, checkpoint)
    headers = read_headers(folder)
    faults = [Fault(message=message, where=str(folder)) for message in _messages(headers, read_headers(checkpoint))]
    if faults:
        raise InvalidInput(faults=faults)
    return Adapter(
        folder=folder,
        room=next(room for room in RANKS if room >= rank),
        layers=tuple(sorted({_layer(name) for name in headers})),
        digest=adapter_digest(folder),
    )


_UNSUPPORTED: Mapping[str, str] = {
    "use_dora": "vLLM has no DoRA",
    "modules_to_save": "vLLM takes no whole modules from an adapter",
    "rank_pattern": "vLLM takes one rank for all layers",
    "alpha_pattern": "vLLM takes one scale for all layers",
}


def _config(folder: Path) -> Mapping[str, Any]:
    path = folder / CONFIG
    try:
        document = load_json(path.read_bytes(), where=str(path))
    except OSError as error:
        raise InvalidInput(f"no adapter here: {error}", where=str(folder)) from error
    if not isinstance(document, dict) or document.get("peft_type") != "LORA":
        raise InvalidInput("adapter_config.json describes no LoRA adapter (peft_type)", where=str(path))
    return document


def _check_declaration(folder: Path, checkpoint: Path) -> None:
    path = folder / DECLARATION
    if not path.exists():
        return
    declared = (load_json(path.read_bytes(), where=str(path)).get("base") or {}).get("weights")
    held = digest_checkpoint(checkpoint).weights
    if declared != held:
        raise InvalidInput(
            f"the adapter is declared to be of the base {str(declared)[:12]}, and this checkpoint is {held[:12]}",
            where=str(path),
        )


def _messages(adapter: Mapping[str, TensorHeader], base: Mapping[str, TensorHeader]) -> Iterator[str]:
    if not adapter:
        yield f"the adapter has no tensors ({WEIGHTS})"
    for name, header in adapter.items():
        layer, side = _layer(name), _side(name)
        if not name.startswith(_PREFIX) or side is None:
            yield f"{name} is no LoRA factor of a linear layer"
            continue
        whole = base.get(f"{layer}.weight")
        packed = {f"{layer}.weight_packed", f"{layer}.qweight"} & base.keys()
        if whole is None and not packed:
            yield f"{name}: the checkpoint has no layer {layer}, so the adapter is of another base"
        elif whole is not None and header.shape[side] != whole.shape[side]:
            yield (
                f"{name} has shape {list(header.shape)} where {layer} has {list(whole.shape)}, "
                "so the adapter is of another base"
            )


def _layer(name: str) -> str:
    return name.removeprefix(_PREFIX).partition(".lora_")[0]


def _side(name: str) -> int | None:
    """The axis of a factor that meets the layer: inputs of A [rank, inputs], outputs of B [outputs, rank]."""
    if name.endswith(".lora_A.weight"):
        return 1
    return 0 if name.endswith(".lora_B.weight") else None


def adapter_request(folder: str | None) -> Any:
    """The ``vllm.LoRARequest`` every request is sent with; None without an adapter."""
    if folder is None:
        return None
    from vllm.lora.request import LoRARequest

    return LoRARequest("xcfg", 1, folder)

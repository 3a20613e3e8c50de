"""What a checkpoint and its settings are held to before an engine is built: vLLM itself is silent on some."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.plugin import ScorerSpec
from xcfg_vllm.adapter_identity import VARIABLE
from xcfg_vllm.adapters import Adapter, read_adapter
from xcfg_vllm.declared_layers import declared_forms
from xcfg_vllm.model_config import length_reason, read_config, tensor_parallel_reason
from xcfg_vllm.model_tensors import check_tensors
from xcfg_vllm.quantization import dtype_reason, quantization_reason


@frozen(kw_only=True)
class Admitted:
    """``declared``: form of each layer of a quantised checkpoint; ``unchecked``: why its tensors were not checked;
    ``adapter``: the LoRA adapter asked for.
    """

    declared: Mapping[str, str] = field(factory=dict)
    unchecked: str = ""
    adapter: Adapter | None = None


def admit(spec: ScorerSpec) -> Admitted:
    """Raise InvalidInput for a checkpoint that is none of its architecture's, UnsupportedError for what cannot run."""
    folder, engine = spec.checkpoint, spec.engine
    config = read_config(folder)
    _refuse("rollout.tensor_parallel_size", tensor_parallel_reason(config, int(engine.get("tensor_parallel_size", 1))))
    _refuse("vllm.max_model_len", length_reason(config, engine.get("max_model_len")))
    _refuse("rollout.quantization", quantization_reason(engine.get("quantization"), str(folder)))
    _refuse("rollout.dtype", dtype_reason(engine.get("dtype"), str(folder)))
    return Admitted(
        declared=declared_forms(folder),
        unchecked=check_tensors(folder),
        adapter=_adapter(engine.get("lora"), folder),
    )


def _adapter(lora: str | None, checkpoint: Path) -> Adapter | None:
    """Raises InvalidInput besides where the adapter is not the one that the side run was planned with."""
    if lora is None:
        return None
    found = read_adapter(Path(lora), checkpoint)
    planned = os.environ.get(VARIABLE, found.digest)
    if planned != found.digest:
        message = f"the adapter changed since this run was planned: {found.digest[:12]}, not {planned[:12]}"
        raise InvalidInput(message, where=lora, hint="run again")
    return found


def _refuse(where: str, reason: str | None) -> None:
    if reason:
        raise UnsupportedError(reason, where=where)

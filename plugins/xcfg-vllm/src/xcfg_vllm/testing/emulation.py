"""An independent forward pass of a quantised checkpoint: transformers' model with its linear layers emulated."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from xcfg.model.sample import TokenBatch
from xcfg_vllm.testing.emulated_linear import emulated

ROW_PARALLEL = ("o_proj", "down_proj")
"""Layers whose inputs lie over the tensor-parallel workers."""


def emulated_model(
    folder: Path, *, dtype: torch.dtype = torch.float32, tensor_parallel_size: int = 1, saturates: bool = False
) -> Any:
    """The model of ``folder``, quantised or not, computing in ``dtype``; no quantiser of transformers takes part.

    ``saturates`` for int8 products on a CPU that saturates them, as the workers' fact ``int8_sums`` tells.
    """
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModelForCausalLM

    method = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("quantization_config", {})
    config = AutoConfig.from_pretrained(folder)
    if method:
        del config.quantization_config
    config.dtype = dtype
    model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager").eval()
    plain: dict[str, torch.Tensor] = {}
    layers: dict[str, dict[str, torch.Tensor]] = defaultdict(dict)
    for file in sorted(folder.glob("*.safetensors")):
        for name, tensor in load_file(file).items():
            layer, _, suffix = name.rpartition(".")
            if method and layer.endswith("_proj"):
                layers[layer][suffix] = tensor
            else:
                plain[name] = tensor.to(dtype)
    for layer, tensors in layers.items():
        shards = tensor_parallel_size if layer.endswith(ROW_PARALLEL) else 1
        parent, _, name = layer.rpartition(".")
        made = emulated(tensors, method=method["quant_method"], shards=shards, saturates=saturates)
        setattr(model.get_submodule(parent), name, made)
    absent, unknown = model.load_state_dict(plain, strict=False)
    absent = [name for name in absent if not name.endswith((".codes", ".scale"))]
    if absent or unknown:
        raise ValueError(f"tensors without a place {unknown}, places without a tensor {absent}")
    return model


def emulated_logprobs(folder: Path, batch: TokenBatch, **how: Any) -> list[NDArray[np.float64]]:
    """Each response token's logprob (nats), sequences one by one and unpadded; the log-softmax is float64.

    ``how`` are the keywords of :func:`emulated_model`.
    """
    model = emulated_model(folder, **how)
    found: list[NDArray[np.float64]] = []
    for prompt, response in zip(batch.prompts, batch.responses, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *response]])).logits[0].double()
        rows = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)
        found.append(rows.gather(1, torch.tensor(response)[:, None])[:, 0].numpy())
    return found

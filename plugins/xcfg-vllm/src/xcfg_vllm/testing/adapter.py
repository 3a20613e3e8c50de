"""Makes a LoRA adapter of random factors, in PEFT's layout, and the checkpoint it amounts to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from xcfg.plugin import digest_checkpoint

ADAPTED = ("q_proj", "v_proj", "o_proj", "gate_proj", "down_proj")


def make_adapter(base: Path, folder: Path, *, rank: int = 4, alpha: int = 8, seed: int = 0, size: float = 0.02) -> Path:
    """Factors A [rank, inputs] and B [outputs, rank] of normal values of ``size``, for the layers :data:`ADAPTED`."""
    import torch
    from safetensors.torch import load_file, save_file

    generator = torch.Generator().manual_seed(seed)
    factors: dict[str, torch.Tensor] = {}
    for name, weight in sorted(load_file(base / "model.safetensors").items()):
        layer = name.removesuffix(".weight")
        if layer.endswith(ADAPTED):
            outputs, inputs = weight.shape
            factors[f"base_model.model.{layer}.lora_A.weight"] = size * torch.randn(rank, inputs, generator=generator)
            factors[f"base_model.model.{layer}.lora_B.weight"] = size * torch.randn(outputs, rank, generator=generator)
    folder.mkdir(parents=True)
    save_file(factors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": list(ADAPTED), "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    declared = {"schema": "xcfg.base/1", "base": {"weights": digest_checkpoint(base).weights}}
    (folder / "xcfg-base.json").write_text(json.dumps(declared), encoding="utf-8")
    return folder


def merged(base: Path, adapter: Path, folder: Path) -> Path:
    """A float32 checkpoint with W + alpha / rank * B A in each adapted layer's place."""
    from safetensors.torch import load_file, save_file

    config = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
    factors = load_file(adapter / "adapter_model.safetensors")
    weights = {name: weight.float() for name, weight in load_file(base / "model.safetensors").items()}
    for name in weights:
        stem = f"base_model.model.{name.removesuffix('.weight')}"
        if f"{stem}.lora_A.weight" in factors:
            product = factors[f"{stem}.lora_B.weight"] @ factors[f"{stem}.lora_A.weight"]
            weights[name] = weights[name] + config["lora_alpha"] / config["r"] * product
    shutil.copytree(base, folder, ignore=shutil.ignore_patterns("*.safetensors", "corpus"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder

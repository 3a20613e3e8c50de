"""Writes the example checkpoint with 8 query and 4 key-value heads in place of 6 and 2: the same function.

``python docs/examples/qwen3-tiny-8-heads/make.py`` writes beside itself. Each key-value head is written twice, so that
its 3 query heads become two groups of 2, and the place left over gets a query head of zeros whose columns of the
output projection are zeros: it adds nothing to any sum. Tensor parallelism of degree 4 needs such numbers of heads.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

HERE = Path(__file__).parent
BASE = HERE.parent / "qwen3-tiny"
WIDTH = 32
QUERIES = (0, 1, 2, None, 3, 4, 5, None)
"""The query head of the base at each place; None is a head of zeros."""
KEYS = (0, 0, 1, 1)


def rows(weight: torch.Tensor, heads: tuple[int | None, ...]) -> torch.Tensor:
    """The rows of a projection (heads * WIDTH, columns), head by head."""
    parts = weight.split(WIDTH)
    return torch.cat([torch.zeros_like(parts[0]) if head is None else parts[head] for head in heads])


def widened(name: str, weight: torch.Tensor) -> torch.Tensor:
    """A tensor of the base as this checkpoint has it."""
    if name.endswith("q_proj.weight"):
        return rows(weight, QUERIES)
    if name.endswith(("k_proj.weight", "v_proj.weight")):
        return rows(weight, KEYS)
    if name.endswith("o_proj.weight"):
        return rows(weight.T, QUERIES).T.contiguous()
    return weight


def main() -> None:
    """Writes weights, configuration, tokenizer and the declaration of the base."""
    from xcfg.plugin import digest_checkpoint

    weights = {name: widened(name, item) for name, item in load_file(BASE / "model.safetensors").items()}
    save_file(weights, HERE / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((BASE / "config.json").read_text())
    config |= {"num_attention_heads": len(QUERIES), "num_key_value_heads": len(KEYS)}
    (HERE / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    for name in ("generation_config.json", "tokenizer.json", "tokenizer_config.json", "LICENSE"):
        shutil.copy(BASE / name, HERE / name)
    base = {"base": {"weights": digest_checkpoint(BASE).weights}}
    (HERE / "xcfg-base.json").write_text(json.dumps(base) + "\n")


if __name__ == "__main__":
    main()

"""Which operation of a float32 forward pass its error comes from: each kind in turn is computed in float64.

``python tests/bench/operations.py FOLDER`` takes the tokens of a finished run of the example checkpoint and prints, for
a plain forward pass of transformers on one thread, the distance of its selected-token logprobs from float64:
as it is, with one kind of operation in float64 and the others in float32, and with that kind alone in float32.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

MODEL = Path(__file__).parents[2] / "docs/examples/qwen3-tiny"
KINDS = {
    "norms": lambda name: name.endswith("norm"),
    "projections of attention": lambda name: name.endswith(("q_proj", "k_proj", "v_proj", "o_proj")),
    "gated MLP": lambda name: name.endswith(".mlp"),
    "rotary angles": lambda name: name.endswith("rotary_emb"),
    "attention": lambda name: False,
    "output head": lambda name: name == "lm_head",
    "log-softmax": lambda name: False,
}
Sequence = tuple[list[int], list[int]]


def tokens(folder: Path) -> list[Sequence]:
    """Prompt and response of every sequence of a run."""
    rows = map(json.loads, (folder / "tokens/batch.jsonl").read_text().splitlines())
    return [(row["prompt_ids"], row["response_ids"]) for row in rows]


def widened(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A call whose floating-point inputs are float64 and whose results have the dtype of the inputs."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = next(item.dtype for item in args if isinstance(item, torch.Tensor) and item.is_floating_point())
        result = forward(*map(_double, args), **{name: _double(item) for name, item in kwargs.items()})
        return _cast(result, given)

    return call


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, tuple):
        return tuple(_cast(item, dtype) for item in value)
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


@contextmanager
def in_float64(model: Any, kinds: set[str]) -> Iterator[None]:
    """Modules of these kinds hold float64 weights and compute in float64; what goes in and out stays float32."""
    chosen = [module for name, module in model.named_modules() if any(KINDS[kind](name) for kind in kinds)]
    for module in chosen:
        module.double()
        module.forward = widened(type(module).forward.__get__(module))
    family = sys.modules[type(model).__module__]
    own = family.eager_attention_forward
    if "attention" in kinds:
        family.eager_attention_forward = lambda module, *args, **more: widened(partial(own, module))(*args, **more)
    try:
        yield
    finally:
        family.eager_attention_forward = own
        for module in chosen:
            del module.forward
            module.float()


def logprobs(model: Any, batch: list[Sequence], *, softmax: torch.dtype) -> torch.Tensor:
    """(N,) float64 of all response tokens, the log-softmax computed in ``softmax``."""
    found = []
    with torch.no_grad():
        for prompt, response in batch:
            logits = model(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1]
            rows = torch.log_softmax(logits.to(softmax), dim=-1).double()
            found.append(rows.gather(1, torch.tensor(response)[:, None])[:, 0])
    return torch.cat(found)


def main(folder: Path) -> None:
    """Prints one row a kind of operation, in nats."""
    torch.set_num_threads(1)
    batch = tokens(folder)
    load = lambda dtype: AutoModelForCausalLM.from_pretrained(MODEL, dtype=dtype, attn_implementation="eager").eval()  # noqa: E731
    exact = logprobs(load(torch.float64), batch, softmax=torch.float64)
    model = load(torch.float32)

    def distance(kinds: set[str]) -> str:
        with in_float64(model, kinds):
            softmax = torch.float64 if "log-softmax" in kinds else torch.float32
            gaps = (logprobs(model, batch, softmax=softmax) - exact).abs()
        return f"{gaps.max():.2e} | {gaps.mean():.2e}"

    print("| | max | mean |\n|---|---|---|")
    print(f"| all in float32 | {distance(set())} |")
    for kind in KINDS:
        print(f"| {kind} in float64 | {distance({kind})} |")
        print(f"| {kind} alone in float32 | {distance(set(KINDS) - {kind})} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

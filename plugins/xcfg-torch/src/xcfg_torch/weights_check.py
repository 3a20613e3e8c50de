"""Whether the weight files and config.json of a model directory are those of one model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xcfg.errors import InvalidInput
from xcfg_torch.semantics import text_config

_FIT = "the weights do not fit config.json"
_OTHER_ARCHITECTURE = ("missing_keys", "unexpected_keys")
_CONDITIONAL = "ForConditionalGeneration"


def check_weights(model: Any, report: Mapping[str, Any], folder: Path) -> None:
    """Raise InvalidInput where ``model`` is not what the files hold, naming the tensor or the setting at fault.

    ``report`` is transformers' loading report. Transformers itself only warns: it fills what is missing with random
    numbers, leaves out what it does not know, and goes on untied where ``tie_word_embeddings`` is wrong.
    """
    where = str(folder)
    head, embedding = head_names(model)
    missing = sorted(map(str, report.get("missing_keys") or ()))
    if head in missing and not _tied(model):
        raise InvalidInput(f"{_FIT}: tie_word_embeddings is false and no file holds {head}", where=where)
    for what in ("missing_keys", "mismatched_keys", "error_msgs", "unexpected_keys"):
        if report.get(what):
            named = ", ".join(sorted(_named(item) for item in report[what])[:3])
            hint = "the files hold another architecture, or more layers, than config.json says"
            raise InvalidInput(f"{_FIT}: {what} {named}", where=where, hint=hint if what in _OTHER_ARCHITECTURE else "")
    if _tied(model) and head and _differ(folder, head, embedding):
        raise InvalidInput(
            f"{_FIT}: tie_word_embeddings is true and the files hold {head} unlike {embedding}", where=where
        )
    _check_architecture(model, where)


def _named(item: Any) -> str:
    """A tensor's name; of one with another shape the shapes in the files and of the model as well."""
    if not isinstance(item, tuple):
        return str(item)
    name, there, asked = item
    return f"{name} {tuple(there)} instead of {tuple(asked)}"


def head_names(model: Any) -> tuple[str, str]:
    """Names of the weights of the output head and of the input embedding; empty where the model has none."""
    named = {id(module): name for name, module in model.named_modules()}
    found = (named.get(id(module), "") for module in (model.get_output_embeddings(), model.get_input_embeddings()))
    head, embedding = (f"{name}.weight" if name else "" for name in found)
    return head, embedding


def _tied(model: Any) -> bool:
    return bool(getattr(model.config, "tie_word_embeddings", getattr(text_config(model), "tie_word_embeddings", False)))


def _differ(folder: Path, one: str, other: str) -> bool:
    """Whether the files hold both tensors, with different bytes."""
    import torch
    from safetensors import safe_open

    tensors: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as opened:
            tensors |= {name: opened.get_tensor(name) for name in {one, other} & set(opened.keys())}
        if len(tensors) == len({one, other}):
            break
    return len(tensors) == len({one, other}) and not torch.equal(tensors[one], tensors[other])


def _check_architecture(model: Any, where: str) -> None:
    """The class that config.json names is the one that transformers made; multimodal ones give their text model."""
    named, made = getattr(model.config, "architectures", None) or (), type(model).__name__
    if named and made not in named and not any(name.endswith(_CONDITIONAL) for name in named):
        raise InvalidInput(
            f"config.json names the architecture {', '.join(named)}, and its model_type makes a {made}", where=where
        )

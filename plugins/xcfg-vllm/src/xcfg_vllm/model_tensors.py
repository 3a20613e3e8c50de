"""Whether a checkpoint holds the tensors its architecture has, no more and no fewer, told from headers alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from xcfg.errors import Fault, InvalidInput
from xcfg_vllm.tensor_headers import TensorHeader, read_headers

QUANTISED_SETS = (
    frozenset({"weight_packed", "weight_scale", "weight_shape"}),
    frozenset({"qweight", "qzeros", "scales"}),
    frozenset({"weight", "weight_scale"}),
    frozenset({"weight", "weight_scale_inv"}),
)
"""Suffixes that stand for one weight of a quantised layer."""

BESIDES = frozenset(
    {"weight_zero_point", "g_idx", "weight_g_idx", "input_scale", "input_zero_point", "k_scale", "v_scale", "bias"}
)
"""Suffixes a quantised layer may have besides."""

_EIGHT_BITS = re.compile("I8$|F8_")
_NEVER_LOADED = re.compile(r"rotary_emb\.inv_freq$|rotary_emb\.(cos|sin)_cached$")


@frozen(kw_only=True)
class Expected:
    """Shape by tensor name, as transformers builds the model without weights, and names that repeat another tensor."""

    architecture: str
    shapes: Mapping[str, tuple[int, ...]]
    tied: Mapping[str, str]


def check_tensors(folder: Path) -> str:
    """Raise InvalidInput for a missing, an extra or a misshapen tensor and a wrong tie of the head.

    Returns why nothing was checked: no safetensors, or an architecture transformers itself does not build one to one
    from a checkpoint's tensors. Empty where all was checked.
    """
    headers = read_headers(folder)
    if not headers:
        return "the checkpoint has no safetensors"
    expected = expected_tensors(folder)
    if isinstance(expected, str):
        return expected
    faults = [Fault(message=message, where=str(folder)) for message in _messages(headers, expected)]
    if faults:
        raise InvalidInput(faults=faults)
    return ""


def expected_tensors(folder: Path) -> Expected | str:
    """The tensors the configuration asks for, or why they are not known. Raises InvalidInput for a contradiction."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    try:
        config = AutoConfig.from_pretrained(folder)
    except (ValueError, KeyError, OSError) as error:
        return f"transformers does not read the configuration: {error}".splitlines()[0]
    if type(config) not in AutoModelForCausalLM._model_mapping:
        return f"transformers has no causal language model for {config.model_type}"
    if get_checkpoint_conversion_mapping(config.model_type):
        return f"checkpoints of {config.model_type} name and split tensors otherwise than the model does"
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config)
    architecture, named = type(model).__name__, tuple(config.architectures or ())
    if named and named != (architecture,):
        raise InvalidInput(
            f"config.json names the architecture {', '.join(named)}, and its model type {config.model_type} is that of "
            f"{architecture}",
            where=str(folder / "config.json"),
        )
    tied = dict(model._tied_weights_keys or {}) if config.tie_word_embeddings else {}
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    return Expected(architecture=architecture, shapes=shapes, tied=tied)


def _messages(headers: Mapping[str, TensorHeader], expected: Expected) -> Iterator[str]:
    layers: dict[str, set[str]] = {}
    for name in headers:
        layer, _, suffix = name.rpartition(".")
        layers.setdefault(layer, set()).add(suffix)
    for name in expected.shapes:
        layer, _, suffix = name.rpartition(".")
        there = layers.get(layer, set())
        whole = any(held <= there for held in QUANTISED_SETS) if suffix == "weight" else False
        if name not in headers and not whole and name not in expected.tied:
            yield f"{name} is missing: {expected.architecture} has it, and vLLM may leave it at random values"
        elif name in headers and headers[name].shape != expected.shapes[name]:
            yield f"{name} has shape {list(headers[name].shape)} where the model has {list(expected.shapes[name])}"
        elif name in headers and _EIGHT_BITS.match(headers[name].dtype) and not whole:
            yield f"{layer} has a weight of {headers[name].dtype} and no weight_scale"
    yield from _extra(headers, expected, layers)
    for name, source in expected.tied.items():
        if name in headers and source in headers and headers[name].content() != headers[source].content():
            yield (
                f"config.json ties {name} to {source}, and the checkpoint holds different values for both: "
                "vLLM would keep one of them for both (tie_word_embeddings)"
            )


def _extra(
    headers: Mapping[str, TensorHeader], expected: Expected, layers: Mapping[str, Iterable[str]]
) -> Iterator[str]:
    for name in headers:
        layer, _, suffix = name.rpartition(".")
        quantised = any(held <= set(layers[layer]) for held in QUANTISED_SETS)
        known = f"{layer}.weight" in expected.shapes and quantised
        own = known and (suffix in BESIDES - {"bias"} or any(suffix in held for held in QUANTISED_SETS))
        cache = suffix in ("k_scale", "v_scale", "q_scale")
        if name not in expected.shapes and not own and not cache and not _NEVER_LOADED.search(name):
            yield f"{name} is extra: {expected.architecture} as config.json describes it has no such tensor"
